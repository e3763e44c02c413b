"""One coroutine a message about servers of tenants."""
