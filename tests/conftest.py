"""The fixtures every test may ask for: real servers, started when first used."""

from functools import cache

import httpcore2
import structlog

pytest_plugins = ["wayline.testkit.fixtures"]

structlog.configure(
    processors=[structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
)

# Each HTTP client of a test would read the machine's certificates for 30 ms, and none leaves the machine.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)
