"""`python -m wayline.console`: serve the console until a signal."""

from __future__ import annotations

import sys

import uvicorn
from pydantic import ValidationError

from wayline.console.app import create_app
from wayline.console.settings import Settings

STOP_WITHIN_S = 5
IDLE_S = 75
"""Between two requests of a connection: more than a load balancer's own time, often 60 s, or it meets closed ones."""


def main() -> None:
    """Serve the console; a wrong setting is said in one line."""
    try:
        settings = Settings()
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        name = f"WAYLINE_CONSOLE_{str(wrong['loc'][0]).upper()}" if wrong["loc"] else "the environment"
        sys.exit(f"wayline: {name}: {wrong['msg'].removeprefix('Value error, ')}")
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )


if __name__ == "__main__":
    main()
