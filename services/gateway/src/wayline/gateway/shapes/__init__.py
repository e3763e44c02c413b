"""Bodies of HTTP requests and answers that the contracts do not define; the tenant comes from the key only."""
