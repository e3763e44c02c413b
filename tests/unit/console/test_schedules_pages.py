"""The pages of schedules: cron in words, moments by the zone's clock, forms that keep what they do not show."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from starlette.datastructures import FormData

from wayline.console.pages.frame import Frame
from wayline.console.pages.schedules.cron_words import WrongTime, by_clock, in_words, next_moments
from wayline.console.pages.schedules.routes import EditSchedule, OneSchedule, Schedules
from wayline.console.pages.schedules.schedule_form import (
    KINDS,
    MISSED,
    OVERLAP,
    ScheduleForm,
    of_schedule,
    written,
)
from wayline.console.render.environment import Templates

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
AT = "2026-05-01T10:00:00Z"
PAYLOAD = '"><img src=x onerror=alert(1)><script>alert(2)</script></textarea>\u202e\x1b[2J'
Json = dict[str, Any]
JOB: Json = {
    **{"agent": "helper", "input": "What is new?", "session_id": "s", "user_id": "ann"},
    "options": {"budget_usd": "0.10", "tags": ["team:ops"], "lane": "batch", "model": None},
}


def firing(words: str = "said", **fields: Any) -> Json:
    return {
        **{"due_at": AT, "decided_at": AT, "cause": "due", "version": 2, "outcome": "fired", "reason": words},
        **{"missed": 3, "job_id": "j1", "status": "failed", "error": {"code": "x", "message": words}},
        **fields,
    }


def schedule(**fields: Any) -> Json:
    return {
        **{"name": "morning", "version": 2, "cron": "0 7 * * MON-FRI", "timezone": "Europe/Berlin", "at": None},
        **{"job": JOB, "enabled": True, "missed": "fire_once", "overlap": "skip", "next_at": "2026-05-04T05:00:00Z"},
        **{"next_firings": ["2026-05-04T05:00:00Z"], "firings": [firing()], "created_at": AT, "updated_at": AT},
        **fields,
    }


def render(template: str, *scopes: str, **values: Any) -> str:
    me = {"tenant": "acme", "name": "ann", "scopes": list(scopes), "open": False, "version": "1"}
    frame = Frame("Schedules", "/schedules", me, "token", "system", "/schedules", now=NOW)
    more = {"in_words": in_words, "by_clock": by_clock, "scope": "admin", "days": 30, **values}
    return Templates().render(f"schedules/{template}.html", frame=frame, **more).decode()


def one(*scopes: str, **fields: Any) -> str:
    page = OneSchedule(schedule(**fields), {"j1": {"total_cost_usd": "1.25"}}, "key", defaults={"lane": "interactive"})
    return render("one_schedule", *(scopes or ("admin", "write")), page=page)


def edit(page: EditSchedule, *scopes: str) -> str:
    return render("edit", *(scopes or ("admin",)), page=page, kinds=KINDS, missed=MISSED, overlap=OVERLAP)


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 7 * * MON-FRI", "At 07:00 on Monday through Friday"),
        ("*/15 9-17 * * *", "Every 15th minute from 09:00 through 17:59"),
        ("0 0 L * *", "At 00:00 on the last day of every month"),
        ("0 9 * * MON#1", "At 09:00 on the first Monday of the month"),
        ("nonsense", "nonsense"),
        ("* " * 5_000, "* " * 5_000),
    ],
    ids=["workdays", "quarters", "last day", "first Monday", "nonsense", "long"],
)
def test_a_cron_expression_is_said_in_words(cron: str, words: str):
    assert in_words(cron) == words


def test_moments_are_those_of_the_zones_clock():
    # The clock goes from 02:00 to 03:00 on 29 March 2026, and back from 03:00 to 02:00 on 25 October.
    spring = next_moments("30 2 * * *", ZoneInfo("Europe/Berlin"), datetime(2026, 3, 28, 12, tzinfo=UTC))
    autumn = next_moments("30 2 * * *", ZoneInfo("Europe/Berlin"), datetime(2026, 10, 24, 12, tzinfo=UTC))

    assert [at.strftime("%d %H:%M") for at in spring[:2]] == ["29 03:00", "30 02:30"]
    assert [at.strftime("%d %H:%M") for at in autumn[:2]] == ["25 02:30", "26 02:30"]
    assert len(spring) == 5


@pytest.mark.parametrize("cron", ["", "* * * *", "61 * * * *", "0 0 31 2 *", "@daily"])
def test_what_never_fires_is_said(cron: str):
    with pytest.raises(WrongTime):
        next_moments(cron, ZoneInfo("UTC"), NOW)


def test_the_list_shows_when_each_fires_and_what_it_costs():
    page = Schedules([schedule()], costs={"morning": {"cost_usd": "2.5"}})
    shown = render("list", "read", page=page)

    assert all(text in shown for text in ("At 07:00 on Monday", "Mon 2026-05-04 07:00 CEST", "$2.50", "2 h ago"))
    assert "paused" in render("list", page=Schedules([schedule(enabled=False, next_at=None)]))
    assert 'class="empty"' in render("list", page=Schedules([]))


def test_a_schedule_shows_its_firings_with_outcome_and_cost():
    shown = one()

    assert all(text in shown for text in ("$1.25", "status-failed", "Mon 2026-05-04 07:00 CEST", "team:ops"))
    assert "It does not fire" in one(next_firings=[], enabled=False)
    assert "It has not fired yet" in one(firings=[])


def test_only_options_beyond_the_defaults_are_shown():
    options = {"lane": "interactive", "model": None, "required_tools": [], "dry_run": False, "budget_usd": "0.10"}

    assert "interactive" not in one(job={**JOB, "options": options})
    assert "batch" in one()
    assert all(name not in one(job={**JOB, "options": options}) for name in ("required_tools", "dry_run"))


@pytest.mark.parametrize(("scopes", "disabled"), [(("read",), 3), (("write",), 2), (("write", "admin"), 0)])
def test_what_a_key_may_not_do_is_disabled(scopes: tuple[str, ...], disabled: int):
    assert one(*scopes).count("disabled title=") == disabled
    assert ("disabled title=" in edit(EditSchedule(ScheduleForm()), *scopes)) == (disabled > 0)


def sent(form: ScheduleForm) -> ScheduleForm:
    """What a browser sends of the form when nobody has touched it."""
    names = ("name", "kind", "cron", "at", "timezone", "agent", "session_id", "user_id", "model", "budget_usd", "tags")
    items = [(name, getattr(form, name)) for name in (*names, "missed", "overlap")]
    items += [("input", form.input)] if form.input is not None else []
    return written(FormData(items + ([("enabled", "on")] if form.enabled else [])))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"enabled": False, "overlap": "allow", "missed": "skip"},
        {"cron": None, "at": "2027-01-01T09:00:07.500000+00:00"},
        {"job": {**JOB, "input": [{"type": "text", "text": "x"}]}},
    ],
    ids=["cron", "off", "once", "parts"],
)
def test_an_untouched_form_saves_what_is_saved(fields: Json):
    saved = schedule(**fields)
    found = sent(of_schedule(saved)).config(saved)

    wanted = {name: saved[name] for name in ("cron", "at", "timezone", "missed", "overlap", "enabled") if saved[name]}
    options = {name: value for name, value in JOB["options"].items() if value is not None}
    assert found == {"enabled": False, **wanted, "job": {**saved["job"], "options": options}}


def test_a_moment_is_meant_by_the_clock_of_the_zone():
    form = ScheduleForm("x", "at", at="2026-07-01T09:00", timezone="Europe/Berlin")

    assert form.config()["at"] == "2026-07-01T09:00:00+02:00"
    for wrong in ({"at": "soon"}, {"timezone": "Mars"}, {"timezone": "../../etc/passwd"}):
        with pytest.raises(WrongTime):
            ScheduleForm(**{"kind": "at", "at": "2026-07-01T09:00", **wrong}).config()


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def everything(words: str) -> str:
    job = {"agent": words, "input": words, "session_id": words, "user_id": words, "options": {"tags": [words]}}
    fields: Json = {"job": job, "firings": [firing(words), firing(words, job_id=None, outcome="refused")]}
    form = ScheduleForm("morning", agent=words, cron=words, timezone="UTC", input=words, tags=words)
    return "".join(
        (
            one(**fields),
            render("list", page=Schedules([schedule(**fields)])),
            edit(EditSchedule(form, agents=[words], words=words, problem=words)),
        )
    )


def test_strangers_words_change_no_page_of_schedules():
    found = _Tags(everything(PAYLOAD))

    assert (found.found, found.handlers) == (_Tags(everything("said")).found, [])
    # What a field sends back, nobody sees; what is edited, its reader wrote.
    shown = re.sub(r'(name|value)="[^"]*"|<textarea.*?</textarea>', "", everything(PAYLOAD), flags=re.DOTALL)
    assert "\x1b" not in shown and "\u202e" not in shown
