"""Log in to servers with OAuth, and authenticate the requests to them."""

# Here, because the modules of this folder import the MCP library, which a start does without.
HAS_LEFT = "wayline.has_left"
"""An extension of a request that was sent, perhaps in vain: also of its repeats after a redirect or a new login."""
REFUSED_LOGIN = "wayline.refused_login"
"""An extension of an answer with which a server refuses a login: why, and what to do about it."""
