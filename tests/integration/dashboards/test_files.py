"""The dashboards and alerts as files: what can be known without a server."""

from __future__ import annotations

import copy
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from wayline.chassis.topology import CONSUMERS
from wayline.standalone.services import MEMBERS

from .conftest import DEPLOY, provisioned, rules, tool
from .questions import (
    Json,
    Window,
    choices,
    expand_promql,
    expand_sql,
    promql_problems,
    questions,
    samples_of,
    structure_problems,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
WINDOW = Window(NOON - timedelta(hours=1), NOON, step_s=15)
FROM, TO = "'2026-01-02T11:00:00+00:00'", "'2026-01-02T12:00:00+00:00'"


def unknown_in(dashboard: Json) -> list[str]:
    """What the panels ask Prometheus for and nobody exports."""
    return [
        f"{asked}: {problem}"
        for asked in questions(dashboard)
        if asked.promql
        for problem in promql_problems(expand_promql(asked.promql, WINDOW, asked.variables))
    ]


def test_what_is_checked_in_is_what_the_generator_makes():
    assert tool("make_dashboards").stale() == [], "run `make dashboards`"


def test_every_panel_says_what_it_shows_and_stands_alone(dashboard: Json):
    assert structure_problems(dashboard, {source["uid"] for source in provisioned()}) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda panel: panel.pop("description"), "no description"),
        (lambda panel: panel["fieldConfig"]["defaults"].pop("unit"), "no unit"),
        (lambda panel: panel["targets"].append(panel["targets"][0]), "refIds"),
        (lambda panel: panel["targets"][0]["datasource"].update(uid="other"), "no datasource other"),
        (lambda panel: panel["gridPos"].update(w=20), "covers"),
        (lambda panel: panel["gridPos"].update(x=23), "outside the page"),
        (lambda panel: panel["fieldConfig"]["defaults"].pop("noValue"), "no noValue"),
    ],
)
def test_a_panel_that_is_not_whole_is_refused(overview: Json, spoil: Any, said: str):
    spoilt = copy.deepcopy(overview)
    spoil(spoilt["panels"][1])

    assert said in "; ".join(structure_problems(spoilt, {source["uid"] for source in provisioned()}))


def test_every_panel_asks_for_metrics_and_labels_that_the_code_declares(dashboard: Json):
    assert unknown_in(dashboard) == []


def test_a_misspelt_metric_or_label_is_refused_wherever_it_stands(overview: Json):
    asked = [question for question in questions(overview) if question.promql]
    text = json.dumps(overview)
    names = {name for one in asked for name in samples_of(expand_promql(one.promql, WINDOW, one.variables))}

    assert len(names) >= 10
    for word in (*names, "gen_ai_request_model", "stream_name"):
        assert unknown_in(json.loads(re.sub(rf"\b{word}\b", f"{word}s", text))), word


def test_every_sql_macro_is_filled_in(dashboard: Json):
    for asked in questions(dashboard):
        if asked.sql:
            assert "$" not in expand_sql(asked.sql, WINDOW, asked.variables), asked
    for asked in choices(dashboard):
        assert "$" not in expand_sql(asked.sql, WINDOW), asked


@pytest.mark.parametrize(
    ("macro", "expanded"),
    [
        ("$__timeFilter(at)", f"at BETWEEN {FROM} AND {TO}"),
        ("at > $__timeFrom() AND at < $__timeTo()", f"at > {FROM} AND at < {TO}"),
        ("$__timeGroupAlias(at, '1d')", 'floor(extract(epoch from at)/86400)*86400 AS "time"'),
        ("$__timeGroup(at, $__interval)", "floor(extract(epoch from at)/15)*15"),
    ],
)
def test_macros_become_what_grafana_makes_of_them(macro: str, expanded: str):
    assert expand_sql(macro, WINDOW) == expanded


@pytest.mark.parametrize("text", ["$__timeFiltr(at)", "$tenant", "rate(x[$__every])"])
def test_an_unknown_dashboard_variable_is_refused(text: str):
    with pytest.raises(ValueError, match=r"\$"):
        expand_sql(text, WINDOW)
    with pytest.raises(ValueError, match=r"\$"):
        expand_promql(text, WINDOW)


def test_every_link_leads_to_a_page_of_grafana(dashboard: Json):
    linked = re.findall(r'"url": "([^"]+)"', json.dumps(dashboard))
    pages = {path.stem for path in (DEPLOY / "grafana/dashboards").glob("*.json")}

    # The console's own login is behind its links, not an answer in JSON behind a key.
    inside = [url for url in linked if not url.startswith("${console:raw}/jobs/")]
    assert {re.sub(r"^/d/wayline-(\w+)\?.*", r"\1", url) for url in inside} <= pages
    [others] = dashboard["links"]
    assert (others["type"], others["includeVars"], others["keepTime"]) == ("dashboards", True, True)
    assert set(others["tags"]) <= set(dashboard["tags"])


def test_costs_are_shown_by_model_agent_and_day_and_in_dollars(overview: Json):
    units = {
        panel["title"]: panel["fieldConfig"]["defaults"].get("unit")
        for panel in overview["panels"][1:]
        if "fieldConfig" in panel
    }

    dollars = {title for title, unit in units.items() if unit == "currencyUSD"}
    assert dollars == {"Ledger", "Cost by model", "Cost by agent", "Cost by day"}


def test_the_cost_dashboard_shows_spending_caches_and_budgets(cost: Json):
    titles = {panel["title"] for panel in cost["panels"]}

    assert {f"Dollars by {what}" for what in ("model", "agent", "user", "tool", "kind", "day and model")} <= titles
    assert {"Cache hits", "Saved by caches", "Lost on caches", "Unsettled calls", "Budgets used"} <= titles


def test_grafana_asks_as_often_as_prometheus_scrapes(prometheus_config: Json):
    [source] = [source for source in provisioned() if source["type"] == "prometheus"]

    assert source["jsonData"]["timeInterval"] == prometheus_config["global"]["scrape_interval"]


def test_points_of_latencies_lead_to_a_trace_and_to_the_console(repository: Path):
    models = json.loads((DEPLOY / "grafana/dashboards/models.json").read_text())
    [source] = [source for source in provisioned() if source["type"] == "prometheus"]
    services = yaml.safe_load((repository / "docker-compose.yml").read_text())["services"]
    [of_trace, of_job] = source["jsonData"]["exemplarTraceIdDestinations"]
    latencies = [panel for panel in models["panels"] if panel["title"] in ("Latency", "Time to first token")]

    assert [target["exemplar"] for panel in latencies for target in panel["targets"]] == [True] * 4
    assert "--enable-feature=exemplar-storage" in services["prometheus"]["command"]
    assert of_trace == {"name": "trace_id", "datasourceUid": "wayline-jaeger"}
    # Grafana takes `$$` for a dollar sign of its own, and the rest from its environment.
    assert (of_job["name"], of_job["url"]) == ("job_id", "$__env{GRAFANA_CONSOLE_URL}/jobs/$${__value.raw}")
    assert "GRAFANA_CONSOLE_URL" in services["grafana"]["environment"]


def test_grafana_finds_its_files_where_the_containers_have_them(repository: Path):
    services = yaml.safe_load((repository / "docker-compose.yml").read_text())["services"]
    mounted = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"] if isinstance(volume, str))
    [provider] = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/wayline.yaml").read_text())["providers"]

    assert mounted["./deploy/grafana/dashboards"] == provider["options"]["path"]
    assert mounted["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"
    for source in provisioned():
        assert re.sub(r"^http://|:\d+(/\w+)?$", "", source["url"]) in services


def test_prometheus_scrapes_every_service_where_its_probes_listen(prometheus_config: Json, repository: Path):
    port = re.findall(r"WAYLINE_HEALTH_PORT=(\d+)", (repository / "deploy/docker/Dockerfile").read_text())

    [scraped] = prometheus_config["scrape_configs"][0]["dns_sd_configs"]
    assert (set(scraped["names"]), [str(scraped["port"])]) == ({member.name for member in MEMBERS}, port)


def test_tempo_is_asked_and_fed_where_it_listens(repository: Path):
    tempo = yaml.safe_load((repository / "deploy/docker/tempo.yml").read_text())
    [source] = [source for source in provisioned() if source["type"] == "tempo"]
    received = tempo["distributor"]["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    documented = re.findall(r"WAYLINE_TRACING_OTLP_ENDPOINT=(\S+?)`", (repository / "docs/operating.md").read_text())

    assert source["url"] == f"http://tempo:{tempo['server']['http_listen_port']}"
    assert documented == [f"http://tempo:{received.rpartition(':')[2]}"]


def test_every_service_that_is_absent_is_an_alert():
    [rule] = [rule for rule in rules() if rule["alert"] == "WaylineServiceAbsent"]

    assert set(re.findall(r'container="([\w-]+)"', rule["expr"])) == {member.name for member in MEMBERS}


def test_every_alert_uses_exported_metrics_and_names_an_action():
    for rule in rules():
        problems = [said for said in promql_problems(rule["expr"]) if said != "nobody exports up"]
        assert problems == [], rule["alert"]
        assert rule["annotations"].keys() == {"summary", "action", "runbook"}, rule["alert"]


def test_the_alert_about_ack_pending_knows_the_limit_of_every_consumer():
    [rule] = [rule for rule in rules() if rule["alert"] == "WaylineAckPendingAtLimit"]
    limits = dict(re.findall(r'stream_name="(\w+)"\} >= (\d+)', rule["expr"]))
    [others] = re.findall(r'stream_name!~"[\w|]+"\} >= (\d+)', rule["expr"])

    assert re.findall(r'stream_name!~"([\w|]+)"', rule["expr"]) == ["|".join(limits)]
    said = {(c.stream, c.name): int(limits.get(c.stream, others)) for c in CONSUMERS}
    assert said == {(c.stream, c.name): c.max_ack_pending for c in CONSUMERS}
