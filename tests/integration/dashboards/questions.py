"""What a dashboard asks, and what can be said about a question without asking it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from types import MappingProxyType
from typing import Any

import promql_parser
from prometheus_client import GC_COLLECTOR, PROCESS_COLLECTOR
from prometheus_client.metrics import MetricWrapperBase

from wayline.telemetry import metrics

SCRAPED_WITH = {"job", "instance", "container"}
"""Labels that Prometheus adds to whatever it scrapes."""
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}

NONE: Mapping[str, str] = MappingProxyType({})

Json = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """One query of one panel."""

    panel: str
    ref: str
    uid: str
    promql: str = ""
    sql: str = ""
    instant: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """What is chosen at the top of its dashboard: by name, as Grafana puts it into a query."""

    def __str__(self) -> str:
        return f"{self.panel} ({self.ref})"


@dataclass(frozen=True)
class Window:
    """What somebody looks at, as Grafana would fill it into a query."""

    start: datetime
    end: datetime
    step_s: float = 1
    scrape_s: float = 10


def panels(dashboard: Json) -> list[Json]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def variables_of(dashboard: Json, **values: str) -> dict[str, str]:
    """What is chosen at the top of a dashboard that was just opened, in Grafana's formats, or these values."""
    found: dict[str, str] = {}
    for variable in dashboard["templating"]["list"]:
        name = variable["name"]
        # `All` goes into a query as it stands, whatever format is asked for.
        everything = variable.get("allValue") if variable["current"]["value"] == ["$__all"] else None
        value = values.get(name, variable["query"] if everything is None else "")
        quoted = "'" + value.replace("'", "''") + "'"
        for format_, text in (("sqlstring", quoted), ("regex", re.escape(value)), ("raw", value)):
            found[f"{name}:{format_}"] = text if everything is None or name in values else everything
    return found


def questions(dashboard: Json, **values: str) -> Iterator[Question]:
    chosen = variables_of(dashboard, **values)
    for panel in panels(dashboard):
        for target in panel["targets"]:
            uid = target["datasource"]["uid"]
            if "rawSql" in target:
                yield Question(panel["title"], target["refId"], uid, sql=target["rawSql"], variables=chosen)
            else:
                promql, instant = target["expr"], target["instant"]
                yield Question(panel["title"], target["refId"], uid, promql, instant=instant, variables=chosen)


def choices(dashboard: Json) -> Iterator[Question]:
    """What fills the lists at the top of a dashboard from Postgres."""
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query" and variable["datasource"]["type"].endswith("postgresql-datasource"):
            yield Question(variable["name"], "", variable["datasource"]["uid"], sql=variable["query"])


def expand_promql(text: str, window: Window, variables: Mapping[str, str] = NONE) -> str:
    """The query as Grafana sends it. Raises ValueError for a variable that nobody fills in."""
    rate_s = max(window.step_s + window.scrape_s, 4 * window.scrape_s)
    values = {"__rate_interval": rate_s, "__interval": window.step_s, "__range": _length_s(window)}
    for name, seconds in values.items():
        text = re.sub(rf"\${name}\b", f"{round(seconds * 1_000)}ms", text)
    return _filled(text, variables)


def expand_sql(text: str, window: Window, variables: Mapping[str, str] = NONE) -> str:
    """The statement as Grafana sends it. Raises ValueError for a macro that nobody knows."""
    text = re.sub(r"\$__interval\b", f"{round(window.step_s)}s", text)
    start, end = (f"'{when.isoformat()}'" for when in (window.start, window.end))

    def group(column: str, every: str) -> str:
        number, unit = re.fullmatch(r"'?(\d+)(\w+)'?", every).groups()  # type: ignore[union-attr]
        seconds = int(number) * SECONDS[unit]
        return f"floor(extract(epoch from {column})/{seconds})*{seconds}"

    macros = {
        "timeFilter": lambda column: f"{column} BETWEEN {start} AND {end}",
        "timeFrom": lambda: start,
        "timeTo": lambda: end,
        "timeGroup": group,
        "timeGroupAlias": lambda column, every: f'{group(column, every)} AS "time"',
    }

    def expanded(found: re.Match[str]) -> str:
        if found[1] not in macros:
            raise ValueError(f"no macro $__{found[1]}: {text}")
        return macros[found[1]](*(word.strip() for word in found[2].split(",") if word.strip()))

    return _filled(re.sub(r"\$__(\w+)\(([^()]*)\)", expanded, text), variables)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    for name, value in variables.items():
        text = text.replace(f"${{{name}}}", value)
    if left := re.search(r"\$\{?\w+", text):
        raise ValueError(f"nobody fills in {left[0]}: {text}")
    return text


def _length_s(window: Window) -> float:
    return (window.end - window.start).total_seconds()


def declared() -> dict[str, set[str]]:
    """Every sample that the code can export, and its labels."""
    found: dict[str, set[str]] = {}
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            for family in metric.describe():
                for suffix in SUFFIXES[family.type]:
                    found[family.name + suffix] = {*metric._labelnames, *(("le",) if suffix == "_bucket" else ())}
    # Of every process, by the client library's own collectors.
    for collector in (PROCESS_COLLECTOR, GC_COLLECTOR):
        for family in collector.collect():
            suffix = "_total" if family.type == "counter" else ""
            found[family.name + suffix] = {label for sample in family.samples for label in sample.labels}
    return found


def samples_of(promql: str) -> set[str]:
    """The samples that a query selects. Raises ValueError when it is no PromQL."""
    return {selector.name for selector in _nodes(promql, "VectorSelector")}


def promql_problems(promql: str) -> list[str]:
    """What the query asks for that the code never exports."""
    known, problems, labels = declared(), [], set(SCRAPED_WITH)
    for selector in _nodes(promql, "VectorSelector"):
        if selector.name not in known:
            problems.append(f"nobody exports {selector.name}")
            continue
        labels |= known[selector.name]
        wrong = {matcher.name for matcher in selector.matchers.matchers} - known[selector.name] - SCRAPED_WITH
        problems += [f"{selector.name} has no label {label}" for label in sorted(wrong)]
    grouped = {label for node in _nodes(promql, "AggregateExpr") if node.modifier for label in node.modifier.labels}
    return problems + [f"nothing here has a label {label}" for label in sorted(grouped - labels)]


def _nodes(promql: str, kind: str) -> list[Any]:
    found: list[Any] = []

    def visit(node: Any) -> None:
        if type(node).__name__ == kind:
            found.append(node)

    promql_parser.walk(promql_parser.parse(promql), visit)
    return found


def structure_problems(dashboard: Json, uids: set[str]) -> list[str]:
    """What Grafana would show wrongly or not at all."""
    problems = [f"the dashboard has no {key}" for key in ("uid", "title", "schemaVersion") if not dashboard.get(key)]
    shown = panels(dashboard)
    for panel in shown:
        said = {**panel, **panel["fieldConfig"]["defaults"]}
        for key in ("title", "description", "unit", "noValue", "targets"):
            if not said.get(key):
                problems.append(f"{panel.get('title')}: no {key}")
        refs = [target.get("refId") for target in panel["targets"]]
        if len(set(refs)) < len(refs) or not all(refs):
            problems.append(f"{panel['title']}: refIds {refs}")
        asked = {target["datasource"]["uid"] for target in panel["targets"]} | {panel["datasource"]["uid"]}
        problems += [f"{panel['title']}: no datasource {uid}" for uid in sorted(asked - uids)]
    ids = [panel["id"] for panel in dashboard["panels"]]
    titles = [panel["title"] for panel in shown]
    problems += [f"{what}: twice" for seen in (ids, titles) for what in {x for x in seen if seen.count(x) > 1}]
    return problems + list(_misplaced(dashboard["panels"]))


def _misplaced(placed: list[Json]) -> Iterator[str]:
    for panel in placed:
        at = panel["gridPos"]
        if not (at["w"] > 0 and at["h"] > 0 and at["x"] >= 0 and at["x"] + at["w"] <= 24):
            yield f"{panel['title']}: outside the page"
    for one, other in combinations(placed, 2):
        a, b = one["gridPos"], other["gridPos"]
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        if not beside and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]:
            yield f"{one['title']} covers {other['title']}"
