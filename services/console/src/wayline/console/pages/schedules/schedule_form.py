"""A schedule as a form: what is written in it as the schedule's configuration, and back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from starlette.datastructures import FormData

from wayline.console.access.visitor import field as field_of
from wayline.console.pages.schedules.cron_words import WrongTime, zone_named
from wayline.console.render.formats import moment

CLOCK: Final = "%Y-%m-%dT%H:%M"
KINDS: Final = (
    ("cron", "Again and again", "At the moments of a cron expression, by the clock of a zone."),
    ("at", "Once", "At one moment, by the clock of a zone."),
)
MISSED: Final = (
    ("fire_once", "fires once for the newest moment that was missed"),
    ("skip", "fires nothing that was missed"),
)
OVERLAP: Final = (
    ("allow", "is submitted all the same"),
    ("skip", "is left out"),
)


@dataclass(frozen=True, slots=True)
class ScheduleForm:
    """What is written in the form."""

    name: str = ""
    kind: str = "cron"
    cron: str = "0 7 * * MON-FRI"
    at: str = ""
    """By the clock of `timezone`, as browsers write it."""
    timezone: str = "UTC"
    agent: str = ""
    input: str | None = ""
    """None: the saved job's input has parts, which the form does not show and which stay."""
    session_id: str = ""
    user_id: str = ""
    model: str = ""
    budget_usd: str = ""
    tags: str = ""
    missed: str = "fire_once"
    overlap: str = "allow"
    enabled: bool = True

    def config(self, saved: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the configuration; `saved` is the one that it takes the place of. Raises WrongTime."""
        when: dict[str, Any] = {"cron": self.cron} if self.kind == "cron" else {"at": self._moment(saved)}
        rules = {"missed": self.missed, "overlap": self.overlap, "enabled": self.enabled}
        return {**when, "timezone": self.timezone or "UTC", "job": self._job((saved or {}).get("job") or {}), **rules}

    def _job(self, saved: Mapping[str, Any]) -> dict[str, Any]:
        """Return the job: what the form does not have of the saved one stays."""
        options = {name: value for name, value in (saved.get("options") or {}).items() if name not in _OPTIONS}
        options |= {"model": self.model} if self.model else {}
        options |= {"budget_usd": self.budget_usd} if self.budget_usd else {}
        options |= {"tags": self.tags.split()} if self.tags else {}
        about = {name: value for name in ("session_id", "user_id") if (value := getattr(self, name))}
        asked = saved.get("input", "") if self.input is None else self.input
        return {"agent": self.agent, "input": asked, **about, "options": options}

    def _moment(self, saved: Mapping[str, Any] | None) -> str:
        zone = zone_named(self.timezone or "UTC")
        try:
            given = datetime.fromisoformat(self.at)
        except ValueError:
            raise WrongTime("say at which moment, with its day and its time") from None
        kept = moment(saved["at"]) if saved and saved.get("at") else None
        if kept is not None and kept.astimezone(zone).strftime(CLOCK) == given.strftime(CLOCK):
            # It has seconds that the form does not show.
            return kept.isoformat()
        return (given if given.tzinfo else given.replace(tzinfo=zone)).isoformat()


_OPTIONS: Final = frozenset({"model", "budget_usd", "tags"})


def written(form: FormData) -> ScheduleForm:
    """Return what a form has."""
    names = ("name", "kind", "cron", "at", "timezone", "agent", "session_id", "user_id", "model", "budget_usd", "tags")
    given = {name: field_of(form, name) for name in names}
    return ScheduleForm(
        **given,
        input=field_of(form, "input") if "input" in form else None,
        missed=field_of(form, "missed") or "fire_once",
        overlap=field_of(form, "overlap") or "allow",
        enabled="enabled" in form,
    )


def of_schedule(schedule: Mapping[str, Any]) -> ScheduleForm:
    """Return the form of a schedule as it is saved."""
    job = schedule["job"]
    options = job.get("options") or {}
    at = moment(schedule["at"])
    zone = zone_named(schedule["timezone"]) if at else None
    return ScheduleForm(
        name=schedule["name"],
        kind="cron" if schedule["cron"] else "at",
        cron=schedule["cron"] or "",
        at=at.astimezone(zone).strftime(CLOCK) if at else "",
        timezone=schedule["timezone"],
        agent=job["agent"],
        input=job["input"] if isinstance(job["input"], str) else None,
        session_id=job.get("session_id") or "",
        user_id=job.get("user_id") or "",
        model=options.get("model") or "",
        budget_usd=str(options.get("budget_usd") or ""),
        tags=" ".join(options.get("tags") or ()),
        missed=schedule["missed"],
        overlap=schedule["overlap"],
        enabled=schedule["enabled"],
    )
