"""Who may open a page: sign-in, the sealed cookie, and what a browser must show of a request."""
