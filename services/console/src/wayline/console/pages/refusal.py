"""What the gateway refused, as a page says it beside the form that asked for it."""

from __future__ import annotations

from typing import Final

from wayline.client import ApiError

OVERTAKEN: Final = "It was changed after this form was opened. The form has yours: save again to put it over the other."


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
