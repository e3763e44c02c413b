"""What people type into forms, as values of the API."""

from __future__ import annotations

import re
from datetime import datetime
from secrets import token_hex
from typing import Any, Final
from zoneinfo import ZoneInfo

from starlette.datastructures import FormData

from wayline.console.access.visitor import field as field_of
from wayline.console.render.json_text import finite, parsed

WHOLE: Final = re.compile(r"[0-9]{1,9}")


class WrongField(ValueError):
    """What was typed is not what its field takes; the message says which and what to do."""


def names_of(text: str) -> list[str]:
    """Return names that were typed one a line."""
    return [name for line in text.splitlines() if (name := line.strip())]


def object_of(text: str, *, what: str) -> dict[str, Any]:
    """Return a JSON object; nothing typed is an empty one. Raises WrongField."""
    try:
        value = parsed(text or "{}")
    except ValueError as error:
        raise WrongField(f"{what}: this is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise WrongField(f"{what}: this is not a JSON object such as {{}}")
    return value


def moment_of(text: str, zone: ZoneInfo, *, what: str) -> str | None:
    """Return a moment that was typed in a zone, as the API takes it; None: none was. Raises WrongField."""
    if not text:
        return None
    try:
        typed = datetime.fromisoformat(text)
        return (typed if typed.tzinfo else typed.replace(tzinfo=zone)).isoformat()
    except (ValueError, OverflowError):
        raise WrongField(f"{what}: this is not a time such as 2027-01-31T12:00") from None


def number_of(text: str, *, what: str) -> float | None:
    """Return a number; None: none was typed. Raises WrongField."""
    if not text:
        return None
    try:
        return finite(text)
    except ValueError:
        raise WrongField(f"{what}: this is not a number") from None


def whole_of(text: str, *, what: str) -> int | None:
    """Return a whole number; None: none was typed. Raises WrongField."""
    if not text:
        return None
    if not WHOLE.fullmatch(text):
        raise WrongField(f"{what}: {text[:20]!r} is not a whole number such as 600")
    return int(text)


def new_key() -> str:
    """Return a key for what a form submits: by it the gateway knows a form that is sent twice."""
    return token_hex(16)


def key_of(form: FormData) -> str | None:
    """Return the key of a form's submission; None: it has none."""
    key = field_of(form, "key")
    return f"console-{key[:64]}" if key else None


def is_untouched(sent: str, shown: str) -> bool:
    """Return whether a field came back as it was shown: browsers send other ends of lines."""
    return sent.replace("\r\n", "\n").strip() == shown.replace("\r\n", "\n").strip()
