"""What the gateway refused, as a page says it beside the form that asked for it."""

from __future__ import annotations

from typing import Final

import structlog

from wayline.client import ApiError

log = structlog.get_logger()
OVERTAKEN: Final = "It was changed after this form was opened. The form has yours: save again to put it over the other."
FAULT: Final = (500, "The console has a fault", "It was logged. Other pages go on working.")
"""The status, title and words of a page that failed."""
TITLES: Final = {401: "You are signed out", 403: "This key may not do that", 404: "There is no such thing"}
"""Of a page in whose place the gateway refused what it shows, by the status of that."""


def page_told_of(error: ApiError) -> tuple[int, str, str]:
    """Return the status, title and words of the page in the place of one that could not be read; log an outage."""
    if error.status is None or error.status >= 500:
        log.warning("the gateway did not answer", code=error.code, status=error.status)
        return 503, "The gateway does not answer", str(error)
    return error.status, TITLES.get(error.status, "The gateway refused it"), str(error)


def reason_of(error: ApiError) -> str:
    """Return why the gateway refused a request. Raises the error where the gateway did not answer, or failed."""
    if error.status is None or error.status >= 500:
        raise error
    return str(error)


def reason_of_save(error: ApiError) -> str:
    """Return why a change was refused; of one that was overtaken, that its form can be sent again. Raises the error."""
    return OVERTAKEN if error.status == 412 else reason_of(error)


def told_of(error: ApiError) -> str:
    """Return why something behind the gateway could not be asked. Raises the error where the gateway is away itself."""
    if error.status is None:
        raise error
    return str(error)
