"""One module a page: what it asks of the API, and the page as a value that a template shows."""
