"""One file per kind of thing that HTTP asks for, one coroutine per request."""
