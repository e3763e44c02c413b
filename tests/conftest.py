"""The fixtures every test may ask for: real servers, started when first used."""

import structlog

pytest_plugins = ["wayline.testkit.fixtures"]

structlog.configure(
    processors=[structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
)
