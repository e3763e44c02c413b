"""The tasks that jobs planned, what each needs and who said so; passages of a document at their places."""
