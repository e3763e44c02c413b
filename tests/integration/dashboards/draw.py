"""A page of ours that draws a dashboard with what its queries answer, to look at it without Grafana."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import Any

from .questions import Json, panels, questions
from .trace_view import convert_fields, frame_to_trace, tree_of
from .watched_platform import WatchedPlatform

COLUMN_PX, ROW_PX = 60, 34
COLOURS = ("#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0")
UNITS = {"currencyUSD": "${:,.5f}", "s": "{:,.3f} s", "ms": "{:,.1f} ms", "percentunit": "{:.1%}", "bytes": "{:,.0f} B"}
ROWS_MAX, BARS_MAX, SPANS_MAX = 12, 8, 20
STYLE = f"""
body {{ background: #111217; color: #ccccdc; font: 12px sans-serif; width: {24 * COLUMN_PX}px; }}
.page {{ position: relative; }}
.panel {{ position: absolute; box-sizing: border-box; border: 1px solid #2c3235; background: #181b1f; overflow: hidden;
    padding: 6px; }}
.row {{ position: absolute; font-weight: bold; padding: 8px; }}
h4 {{ margin: 0 0 4px; font-size: 13px; }} td, th {{ padding: 1px 6px; text-align: left; white-space: nowrap; }}
.none {{ color: #7b8087; }} .big {{ font-size: 32px; color: #73bf69; }} .bar {{ background: #3274d9; height: 12px; }}
"""


def shown(value: Any, unit: str) -> str:
    """A value as its unit has it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return escape(str(value if value is not None else ""))[:80]
    return UNITS.get(unit, "{:,.4g}").format(value)


def label_of(row: Json) -> str:
    words = [str(value) for name, value in row.items() if name not in ("value", "time", "at", "__name__")]
    return " ".join(word for word in words if word) or "value"


def table(rows: list[Json], panel: Json) -> str:
    units = {one["matcher"]["options"]: one["properties"] for one in panel["fieldConfig"]["overrides"]}
    hidden = {name for name, of in units.items() if any(p["id"] == "custom.hidden" for p in of)}
    names = [name for name in rows[0] if name not in hidden]
    unit = {name: next((p["value"] for p in of if p["id"] == "unit"), "") for name, of in units.items()}
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = ("".join(f"<td>{shown(row[name], unit.get(name, ''))}</td>" for name in names) for row in rows[:ROWS_MAX])
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{cells}</tr>' for cells in body)}</table>"


def lines(rows: list[Json], panel: Json, width: int, height: int) -> str:
    """Series over time as lines."""
    series: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        value = number_of(row)
        series[str(row.get("metric") or label_of(row))].append((float(row.get("time") or row.get("at", 0)), value))
    times = [at for points in series.values() for at, _ in points]
    most = max((v for points in series.values() for _, v in points), default=0) or 1
    first, length = min(times), (max(times) - min(times)) or 1
    drawn = []
    for n, points in enumerate(series.values()):
        at = [f"{(t - first) / length * width:.1f},{height - v / most * height:.1f}" for t, v in points]
        colour = COLOURS[n % len(COLOURS)]
        drawn.append(f'<polyline fill="none" stroke="{colour}" points="{" ".join(at if len(at) > 1 else at * 2)}"/>')
        drawn += [f'<circle r="2" fill="{colour}" cx="{p.split(",")[0]}" cy="{p.split(",")[1]}"/>' for p in at]
    unit = panel["fieldConfig"]["defaults"]["unit"]
    names = " ".join(
        f'<span style="color:{COLOURS[n % len(COLOURS)]}">{escape(name[:40])}</span>' for n, name in enumerate(series)
    )
    return f'<svg width="{width}" height="{height}">{"".join(drawn)}</svg><div>max {shown(most, unit)} {names}</div>'


def bars(rows: list[Json], panel: Json) -> str:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    values = [(label_of({k: v for k, v in row.items() if isinstance(v, str)}), number_of(row)) for row in rows]
    most = panel["fieldConfig"]["defaults"].get("max") or max((value for _, value in values), default=0) or 1
    return "".join(
        f"<div>{escape(name)} {shown(value, unit)}"
        f'<div class="bar" style="width:{min(1, value / most) * 90:.0f}%"></div></div>'
        for name, value in values[:BARS_MAX]
    )


def number_of(row: Json) -> float:
    values = (value for name, value in row.items() if name not in ("at", "time"))
    numbers = (value for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    return float(next(numbers, 0))


def trace(rows: list[Json], panel: Json, width: int) -> str:
    """Spans as Grafana's trace panel draws them."""
    data = frame_to_trace(convert_fields(rows, panel["transformations"]))
    spans = tree_of(data) if data else []
    first = min(span.start for span in spans)
    length = max(span.start + span.duration for span in spans) - first or 1
    lines_: list[str] = []
    for span in spans[:SPANS_MAX]:
        said = " ".join(escape(f"{key}={value}") for key, value in span.tags if key in ("cost_usd", "error", "open"))
        left, wide = ((at / length * width * 0.6) for at in (span.start - first, span.duration))
        lines_.append(
            f'<div style="padding-left:{span.depth * 14}px">{escape(span.service)} <b>{escape(span.name)}</b> '
            f"{span.duration / 1_000:.1f} ms {said}"
            f'<div class="bar" style="margin-left:{left:.0f}px;width:{max(2, wide):.0f}px;height:5px"></div></div>'
        )
    return "".join(lines_)


def drawn(panel: Json, rows: list[Json]) -> str:
    at, defaults = panel["gridPos"], panel["fieldConfig"]["defaults"]
    width, height = at["w"] * COLUMN_PX - 20, at["h"] * ROW_PX - 60
    if not rows:
        return f'<div class="none">{escape(defaults["noValue"])}</div>'
    if panel["type"] == "traces":
        return trace(rows, panel, width)
    if panel["type"] == "table":
        return table(rows, panel)
    if panel["type"] == "stat":
        return f'<div class="big">{shown(number_of(rows[-1]), defaults["unit"])}</div>'
    return bars(rows, panel) if panel["type"] == "bargauge" else lines(rows, panel, width, height)


def page(dashboard: Json, answers: dict[str, list[Json]]) -> str:
    """A dashboard as HTML."""
    parts = []
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        place = f"left:{at['x'] * COLUMN_PX}px;top:{at['y'] * ROW_PX}px"
        if panel["type"] == "row":
            parts.append(f'<div class="row" style="{place}">{escape(panel["title"])}</div>')
            continue
        place += f";width:{at['w'] * COLUMN_PX - 6}px;height:{at['h'] * ROW_PX - 6}px"
        body = drawn(panel, answers[panel["title"]])
        parts.append(f'<div class="panel" style="{place}"><h4>{escape(panel["title"])}</h4>{body}</div>')
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"]) * ROW_PX
    title = escape(dashboard["title"])
    return (
        f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style><h2>{title}</h2>"
        f'<div class="page" style="height:{height}px">{"".join(parts)}</div>'
    )


async def answers_of(watched: WatchedPlatform, dashboard: Json) -> dict[str, list[Json]]:
    """What each panel's questions answer; of several questions each row says whose it is."""
    found: dict[str, list[Json]] = {panel["title"]: [] for panel in panels(dashboard)}
    for asked in questions(dashboard):
        rows = await watched.answer(asked) if asked.sql or watched.prometheus else []
        found[asked.panel] += [{**row, "of": asked.ref} for row in rows] if asked.promql else rows
    return found


def photograph(file: Path, dashboard: Json) -> None:
    """Take a picture of a page where there is a Chromium."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        return
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"]) * ROW_PX + 80
    size = f"--window-size={24 * COLUMN_PX + 20},{height}"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", size]
    command = [browser, *flags, f"--screenshot={file.with_suffix('.png')}", file.as_uri()]
    subprocess.run(command, capture_output=True, timeout=120, check=False)
