"""Log in to servers with OAuth, and authenticate the requests to them."""
