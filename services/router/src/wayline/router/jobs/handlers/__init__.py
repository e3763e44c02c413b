"""What the router does with each message about a job."""
