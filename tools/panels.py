"""Grafana's dashboard JSON as a few small dataclasses: what a panel asks, how it is shown, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

PROMETHEUS = {"type": "prometheus", "uid": "wayline-prometheus"}
POSTGRES = {"type": "grafana-postgresql-datasource", "uid": "wayline-postgres"}
"""The datasources, as `deploy/grafana/provisioning/datasources` names them."""

SCHEMA_VERSION = 41
COLUMNS = 24
ROW_HEIGHT = 1

Json = dict[str, Any]
Kind = Literal["timeseries", "stat", "bargauge", "table"]


@dataclass(frozen=True)
class Metric:
    """A question to Prometheus: over time, or as things are at the end of the window."""

    expr: str
    legend: str = ""
    instant: bool = False

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
    link_title: str = ""

    def json(self) -> Json:
        properties: list[Json] = []
        if self.unit:
            properties.append({"id": "unit", "value": self.unit})
        if self.link:
            link = {"title": self.link_title, "url": self.link, "targetBlank": True}
            properties.append({"id": "links", "value": [link]})
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
        if self.kind == "bargauge":
            return {"reduceOptions": reduce, "orientation": "horizontal", "displayMode": "basic"}
        return {"reduceOptions": reduce, "colorMode": "value", "graphMode": "none", "textMode": "auto"}


@dataclass(frozen=True)
class Row:
    """Panels under one heading, placed left to right, then down."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Setting:
    """A text field at the top of the dashboard, which its user may change."""

    name: str
    label: str
    value: str

    def json(self) -> Json:
        current = {"text": self.value, "value": self.value}
        return {
            "name": self.name,
            "label": self.label,
            "type": "textbox",
            "hide": 0,
            "query": self.value,
            "current": current,
            "options": [{**current, "selected": True}],
        }


@dataclass(frozen=True)
class Dashboard:
    """A page of Grafana."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    settings: Sequence[Setting] = field(default=())

    def json(self) -> Json:
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["wayline"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": False,
            # Days of money are days in UTC, in the tables and here.
            "timezone": "utc",
            "time": {"from": "now-6h", "to": "now"},
            "refresh": "30s",
            "graphTooltip": 1,
            "templating": {"list": [setting.json() for setting in self.settings]},
            "annotations": {"list": []},
            "panels": list(self._placed()),
        }

    def _placed(self) -> Iterator[Json]:
        number, y = 1, 0
        for row in self.rows:
            yield {
                "id": number,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": ROW_HEIGHT},
                "panels": [],
            }
            number, x, y, tallest = number + 1, 0, y + ROW_HEIGHT, 0
            for panel in row.panels:
                if x + panel.width > COLUMNS:
                    x, y, tallest = 0, y + tallest, 0
                yield panel.json(number, x, y)
                number, x, tallest = number + 1, x + panel.width, max(tallest, panel.height)
            y += tallest
