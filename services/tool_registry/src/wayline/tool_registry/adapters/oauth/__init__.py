"""Log in to servers with OAuth, and authenticate the requests to them."""

# Here, because the modules of this folder import the MCP library, which a start does without.
NEEDS_SCOPE = -32051
"""The code that we give a server's refusal of a token that was given for too little: the call was not made."""
