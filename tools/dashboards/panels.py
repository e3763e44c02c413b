"""Panels of Grafana as a few small dataclasses: what a panel asks, how its answer is shown, and where it leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

PROMETHEUS = {"type": "prometheus", "uid": "wayline-prometheus"}
POSTGRES = {"type": "grafana-postgresql-datasource", "uid": "wayline-postgres"}
"""The datasources, as `deploy/grafana/provisioning/datasources` names them."""

NO_TRAFFIC = "no traffic"
NOTHING = "none in this window"

Json = dict[str, Any]
Kind = Literal["timeseries", "stat", "bargauge", "table", "traces"]


@dataclass(frozen=True)
class Metric:
    """A question to Prometheus: over time, or as things are at the end of the window."""

    expr: str
    legend: str = ""
    instant: bool = False
    examples: bool = False
    """Show single measurements as points that lead to their traces."""

    datasource = PROMETHEUS

    def json(self, ref: str) -> Json:
        return {
            "refId": ref,
            "datasource": PROMETHEUS,
            "editorMode": "code",
            "expr": self.expr,
            "legendFormat": self.legend or "__auto",
            "instant": self.instant,
            "range": not self.instant,
            **({"exemplar": True} if self.examples else {}),
        }


@dataclass(frozen=True)
class Sql:
    """A question to Postgres: a table, or (`over_time`) series with a column `time`."""

    sql: str
    over_time: bool = False

    datasource = POSTGRES

    def json(self, ref: str) -> Json:
        return {
            "refId": ref,
            "datasource": POSTGRES,
            "editorMode": "code",
            "format": "time_series" if self.over_time else "table",
            "rawQuery": True,
            "rawSql": " ".join(self.sql.split()),
        }


@dataclass(frozen=True)
class Column:
    """How a column of a table is shown where the panel's unit does not fit it."""

    name: str
    unit: str = ""
    link: str = ""
    """Another page of this Grafana, or an address outside it."""
    link_title: str = ""
    other_link: str = ""
    other_title: str = ""
    hidden: bool = False
    """It is there for a link."""

    def json(self) -> Json:
        properties: list[Json] = []
        if self.hidden:
            properties.append({"id": "custom.hidden", "value": True})
        if self.unit:
            properties.append({"id": "unit", "value": self.unit})
        if self.link:
            links = [(self.link_title, self.link), (self.other_title, self.other_link)]
            value = [
                {"title": title, "url": url, "targetBlank": not url.startswith("/")} for title, url in links if url
            ]
            properties.append({"id": "links", "value": value})
        return {"matcher": {"id": "byName", "options": self.name}, "properties": properties}


@dataclass(frozen=True)
class Panel:
    """One panel; `unit` is Grafana's id of a unit."""

    title: str
    description: str
    asks: Sequence[Metric | Sql]
    unit: str
    kind: Kind = "timeseries"
    width: int = 8
    height: int = 8
    decimals: int | None = None
    bars: bool = False
    alarm_above: float | None = None
    """Shown in red from here on."""
    columns: Sequence[Column] = ()
    parsed: Sequence[str] = ()
    """Columns of JSON, which Postgres sends as text."""

    def json(self, number: int, x: int, y: int) -> Json:
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": self.asks[0].datasource,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [ask.json(chr(ord("A") + n)) for n, ask in enumerate(self.asks)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": [column.json() for column in self.columns]},
            "options": self._options(),
            **({"transformations": [_parse(self.parsed)]} if self.parsed else {}),
        }

    def _defaults(self) -> Json:
        steps: list[Json] = [{"color": "green", "value": None}]
        if self.alarm_above is not None:
            steps.append({"color": "red", "value": self.alarm_above})
        custom: Json = {}
        if self.kind == "timeseries":
            custom = {
                "drawStyle": "bars" if self.bars else "line",
                "fillOpacity": 60 if self.bars else 8,
                "stacking": {"mode": "normal" if self.bars else "none", "group": "A"},
                "showPoints": "auto",
            }
        return {
            "unit": self.unit,
            "min": 0,
            # A share is drawn as a part of the whole, and not of the largest.
            **({"max": 1} if self.kind == "bargauge" and self.unit == "percentunit" else {}),
            # Shown instead of "No data", which looks like a fault.
            "noValue": NOTHING if any(isinstance(ask, Sql) for ask in self.asks) else NO_TRAFFIC,
            **({} if self.decimals is None else {"decimals": self.decimals}),
            "color": {"mode": "palette-classic" if self.kind == "timeseries" else "thresholds"},
            "thresholds": {"mode": "absolute", "steps": steps},
            "custom": custom,
        }

    def _options(self) -> Json:
        # What SQL answers is one value a row; what Prometheus answers is one series a value.
        rows = any(isinstance(ask, Sql) for ask in self.asks)
        reduce = {"values": rows, "calcs": [] if rows else ["lastNotNull"], "fields": ""}
        if self.kind == "timeseries":
            return {
                "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        if self.kind == "table":
            return {"showHeader": True, "cellHeight": "sm"}
        if self.kind == "traces":
            return {}
        if self.kind == "bargauge":
            return {"reduceOptions": reduce, "orientation": "horizontal", "displayMode": "basic"}
        return {"reduceOptions": reduce, "colorMode": "value", "graphMode": "none", "textMode": "auto"}


def _parse(columns: Sequence[str]) -> Json:
    """Return the step of Grafana that parses each value of some columns as JSON."""
    conversions = [{"targetField": column, "destinationType": "other"} for column in columns]
    return {"id": "convertFieldType", "options": {"conversions": conversions, "fields": {}}}
