"""Log lines of a process that runs one service by itself; `wayline up` and `wayline serve` set up their own."""

from __future__ import annotations

import logging
import sys

import structlog


def plain() -> None:
    """Write lines to the error stream, tracebacks as Python prints them.

    structlog's own default draws every local variable of every frame, which can stop the event loop for minutes. What
    other libraries log the MCP library would have drawn in colours, for a fifth of a second each.
    """
    logging.basicConfig(format="%(asctime)s [%(levelname)s] %(message)s", force=True)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
