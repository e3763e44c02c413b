"""A page of Grafana: its variables, its links to the others, the alerts on it, and where its panels stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .panels import POSTGRES, PROMETHEUS, Json, Panel

SCHEMA_VERSION = 41
COLUMNS = 24
ROW_HEIGHT = 1
TAG = "wayline"

ALL = "$__all"
EVERY_WORD = "'*'"
"""What `All` is in SQL: Grafana puts it in as it stands."""
EVERY_LABEL = ".*"
"""What `All` is in PromQL."""


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
    value: str = ""

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
class Choice:
    """A list at the top of the dashboard: several of it, or all."""

    name: str
    label: str
    sql: str = ""
    """The values are what this finds."""
    labels: str = ""
    """The values are what Prometheus knows: `label_values(metric, label)`."""
    words: Sequence[str] = ()
    """The values are these."""

    def json(self) -> Json:
        return {
            "name": self.name,
            "label": self.label,
            "hide": 0,
            "multi": True,
            "includeAll": True,
            "allValue": EVERY_LABEL if self.labels else EVERY_WORD,
            "current": {"text": ["All"], "value": [ALL]},
            **(self._listed() if self.words else self._asked()),
        }

    def _listed(self) -> Json:
        options = [{"text": word, "value": word, "selected": False} for word in self.words]
        everything = {"text": "All", "value": ALL, "selected": True}
        return {"type": "custom", "query": ",".join(self.words), "options": [everything, *options]}

    def _asked(self) -> Json:
        query = self.labels or " ".join(self.sql.split())
        return {
            "type": "query",
            "datasource": PROMETHEUS if self.labels else POSTGRES,
            "query": query,
            # Whenever the window changes.
            "refresh": 2,
            "sort": 1,
            "options": [],
        }


Variable = Setting | Choice


def chosen(column: str, variable: str) -> str:
    """Return the SQL condition that a column has one of the chosen values."""
    values = f"(${{{variable}:sqlstring}})"
    return f"('*' IN {values} OR {column} IN {values})"


@dataclass(frozen=True)
class Dashboard:
    """A page of Grafana."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = field(default=())

    def json(self) -> Json:
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": False,
            # Days of money are days in UTC, in the tables and here.
            "timezone": "utc",
            "time": {"from": "now-6h", "to": "now"},
            "refresh": "30s",
            "graphTooltip": 1,
            "templating": {"list": [variable.json() for variable in self.variables]},
            "annotations": {"list": [_alerts()]},
            "links": [_other_pages()],
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


def _other_pages() -> Json:
    """Return the links to every page with the tag; window and variables go along."""
    return {
        "type": "dashboards",
        "title": "Wayline",
        "tags": [TAG],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def _alerts() -> Json:
    """Return what marks the times at which an alert of `deploy/prometheus/rules` rang."""
    return {
        "name": "Alerts",
        "datasource": PROMETHEUS,
        "enable": True,
        "iconColor": "red",
        "expr": 'ALERTS{alertstate="firing"}',
        "step": "60s",
        "titleFormat": "{{alertname}}",
        "tagKeys": "severity",
    }
