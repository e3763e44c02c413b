"""One folder per subject of the HTTP interface, one file per kind of thing, one coroutine per request."""
