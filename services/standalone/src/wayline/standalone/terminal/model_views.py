"""Models, drawn for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from wayline.standalone.terminal.table import details, table

UNKNOWN = "unknown"
RATES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")


def models_table(page: dict[str, Any]) -> RenderableType:
    """Draw one row for each model; prices are dollars per million tokens."""
    usable, own = set(page["usable"]), set(page["own"])
    return table(
        ("model", "tier", "window", "$ in", "$ cached", "$ out", ""),
        (
            (
                escape(name),
                card["tier"],
                f"{card['context_window']:,}",
                *_row(card["prices"]),
                ", ".join(word for word, holds in (("own", name in own), ("off", name not in usable)) if holds),
            )
            for name, card in ((f"{card['provider']}/{card['model']}", card) for card in page["models"])
        ),
        nothing="no models",
    )


def model_details(card: dict[str, Any]) -> RenderableType:
    """Draw everything about one model."""
    rows: list[tuple[str, str]] = []
    prices = card["prices"]
    for name, value in card.items():
        if name == "prices":
            rows.append(("price", UNKNOWN if prices is None else escape(_rates(prices))))
            continue
        rows.append((name.replace("_", " "), escape(_shown(value))))
    for step in (prices or {}).get("above", ()):
        rows.append((f"above {step['tokens']:,} tokens", escape(_rates(step))))
    for held in (prices or {}).get("when", ()):
        rows.append((_moment(held), escape(_rates(held))))
    if prices:
        rows.append(("price by", escape(prices["source"] or "its own card")))
    return details(rows)


def _row(prices: dict[str, Any] | None) -> tuple[str, str, str]:
    if prices is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    rates = prices["rates"]
    read = rates["input"] if rates["cache_read"] is None else rates["cache_read"]
    more = "+" if prices["above"] else ""
    return _amount(rates["input"]) + more, _amount(read) + more, _amount(rates["output"]) + more


def _rates(held: dict[str, Any]) -> str:
    rates = ((name, held["rates"][name]) for name in RATES)
    text = ", ".join(f"{name.replace('_', ' ')} ${_amount(rate)}" for name, rate in rates if rate is not None)
    return f"{text} a million tokens"


def _amount(rate: str) -> str:
    return f"{float(rate):.12f}".rstrip("0").rstrip(".")


def _moment(held: dict[str, Any]) -> str:
    since = f"since {held['since']}" if held["since"] else ""
    daily = f"daily {held['daily_from']} to {held['daily_until']} UTC" if held["daily_from"] else ""
    return " ".join(text for text in (since, daily) if text)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_shown(held)}" for name, held in value.items())
    if isinstance(value, list):
        return " ".join(str(held) for held in value) or "none"
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "none"}[value]
    return f"{value:,}" if isinstance(value, int) else str(value)
