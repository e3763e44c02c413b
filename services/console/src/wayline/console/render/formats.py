"""How single values read: money, tokens, times, ids. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

UNKNOWN = "unknown"
CENTS = Decimal("0.01")
PLACES = 4
"""Of an amount below a dollar."""
DIGITS = 3
"""Of an amount below a thousandth of a dollar, after its zeros. An amount's title has all of its digits."""
AGES = ((60, 1, "s"), (3_600, 60, "min"), (86_400, 3_600, "h"), (float("inf"), 86_400, "d"))
MARKED = {
    **{code: f"⟦U+{code:04X}⟧" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)},
    **{code: f"⟦U+{code:04X}⟧" for code in range(0xD800, 0xE000)},
    **{code: f"⟦U+{code:04X}⟧" for code in (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))},
    **{code: f"⟦U+{code:04X}⟧" for code in (*range(0x2060, 0x2065), *range(0x206A, 0x2070), *range(0xFFF9, 0xFFFC))},
    **{code: f"⟦U+{code:04X}⟧" for code in (0x180E, 0xFEFF, *range(0xE0000, 0xE0080))},
    **{code: f"⟦U+{code:04X}⟧" for code in (0x115F, 0x1160, 0x3164, 0xFFA0, *range(0xFE00, 0xFE0E))},
    **{code: f"⟦U+{code:04X}⟧" for code in range(0xE0100, 0xE01F0)},
}
"""Characters that turn the direction of text around or control a terminal, halves of characters, and letters that only
models read: shown by name, as they hide what is there or cannot be sent."""

_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
PILED = re.compile(f"({_MARK}{{4}})({_MARK}+)")
"""Marks on one letter beyond those that any language has: they cover the lines around it."""


def usd(amount: Any) -> str:
    """Write dollars: from one on in cents, of less the digits that say something. None is unknown, which is not 0."""
    value = _decimal(amount)
    if value is None:
        return UNKNOWN
    if value == 0:
        return "$0"
    if value < 0:
        return f"-{usd(-value)}"
    if value >= 1:
        return f"${value.quantize(CENTS):,f}"
    places = max(PLACES, DIGITS - 1 - value.adjusted())
    short = value.quantize(Decimal(1).scaleb(-places)).normalize()
    in_cents = short.quantize(CENTS)
    return f"${in_cents if short == in_cents else short:f}"


def exact_usd(amount: Any) -> str:
    """Write dollars with all their digits, for a title."""
    value = _decimal(amount)
    if value is None:
        return "its price is not known"
    return f"{'-' if value < 0 else ''}${abs(value).normalize():f}"


def _decimal(amount: Any) -> Decimal | None:
    try:
        value = None if amount is None else Decimal(str(amount))
    except InvalidOperation:
        return None
    return value if value is None or value.is_finite() else None


def count(number: Any) -> str:
    """Write a count with its thousands apart."""
    return f"{int(number):,}"


def many(number: int, one: str, several: str = "") -> str:
    """Write how many there are of something."""
    return f"{count(number)} {one if number == 1 else several or f'{one}s'}"


def tokens(usage: dict[str, Any] | None) -> int:
    """Add up the tokens of a usage: what was read, from caches as well, and what was written."""
    return 0 if usage is None else int(usage.get("input", 0)) + int(usage.get("output", 0))


def size(number_of_bytes: int) -> str:
    """Write how large a file is, in one unit."""
    if number_of_bytes < 1_000:
        return f"{number_of_bytes} B"
    kilobytes = number_of_bytes / 1_000
    return f"{kilobytes:,.0f} kB" if kilobytes < 1_000 else f"{kilobytes / 1_000:,.1f} MB"


def duration(milliseconds: Any) -> str:
    """Write how long something took; None: it is not over."""
    if milliseconds is None:
        return "running"
    ms = float(milliseconds)
    if ms < 1_000:
        return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"
    seconds = ms / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def moment(text: str | None) -> datetime | None:
    """Read a moment of the API."""
    return None if text is None else datetime.fromisoformat(text)


def age(at: str | None, now: datetime) -> str:
    """Write how long ago something was, in one unit."""
    then = moment(at)
    if then is None:
        return ""
    seconds = max((now - then).total_seconds(), 0)
    for below, unit_s, unit in AGES:
        if seconds < below:
            return f"{int(seconds // unit_s)} {unit}"
    return ""


def local(at: str | None, zone: ZoneInfo) -> str:
    """Write a moment in a zone, to the second."""
    then = moment(at)
    return "" if then is None else then.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def typed_moment(at: str | None, zone: ZoneInfo) -> str:
    """Write a moment as a browser's field for times takes it, in a zone."""
    then = moment(at)
    return "" if then is None else then.astimezone(zone).strftime("%Y-%m-%dT%H:%M")


def lasted_ms(begun: str | None, ended: str | None, now: datetime | None = None) -> float | None:
    """Return the milliseconds between two moments, or until now; None: the first is missing."""
    first, last = moment(begun), moment(ended) or now
    return None if first is None or last is None else (last - first).total_seconds() * 1_000


def visible(text: Any) -> str:
    """Show the characters of a stranger's text that hide or turn around what stands beside them by their names."""
    return PILED.sub(lambda found: f"{found[1]}⟦{len(found[2])} marks⟧", str(text).translate(MARKED))


def shortened(text: str, most: int) -> str:
    """Cut a text that is too long, and say so."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def one_line(text: Any, most: int = 120) -> str:
    """Return the beginning of a text on one line."""
    # What stands behind empty lines is shown as well.
    return shortened(" ".join(visible(str(text).lstrip(" \t\r\n")[: most * 4]).split()), most)


def utc_now() -> datetime:
    """Return the present moment."""
    return datetime.now(UTC)


def filters(zone: ZoneInfo) -> Iterator[tuple[str, Any]]:
    """Yield what templates call these."""
    yield from {
        "usd": usd,
        "exact_usd": exact_usd,
        "count": count,
        "many": many,
        "tokens": tokens,
        "duration": duration,
        "age": age,
        "took": lambda begun, ended, now: duration(lasted_ms(begun, ended, now)) if begun else "",
        "local": lambda at: local(at, zone),
        "typed_moment": lambda at: typed_moment(at, zone),
        "size": size,
        "visible": visible,
        "one_line": one_line,
        "shortened": shortened,
    }.items()
