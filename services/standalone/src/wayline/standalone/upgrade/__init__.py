"""`wayline upgrade --check`: compare a running installation with this version."""
