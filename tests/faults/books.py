"""What every place that knows of money says about the same calls, and whether they say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.money import NANO_USD
from wayline.simulator import Charge

from .platform import ONCE, TENANT, FaultPlatform

NOTHING = Decimal(0)
PAYMENT_USD = Decimal("0.01")
"""What the effects server says that a payment charged, and the most that it is declared to."""
UNSEEN = frozenset({e.LOST, "cancelled", "time_limit", "open"})
"""Why a call that the provider had told the end of may still be unknown here: nobody was left to read it."""


End = e.ModelCompleted | e.ModelFailed | e.AuxiliaryCompleted | e.AuxiliaryFailed
ENDS = (e.ModelCompleted, e.ModelFailed, e.AuxiliaryCompleted, e.AuxiliaryFailed)


@dataclass(frozen=True)
class Call:
    """One attempt, or one call of a paid tool, as its job's log has it: what it cost, or between what and what."""

    job_id: str
    span_id: str
    cost_usd: Decimal | None
    bounds: e.Bounds | None = None
    code: str = ""
    """Of the error, where it had one."""
    tool: bool = False


def calls_of(job_id: str, events: Iterable[e.Event]) -> dict[str, Call]:
    """Every call of a log by attempt id, also beside the conversation; each is begun once and ended at most once.

    Paid tools' are there by their keys.
    """
    found: dict[str, Call] = {}
    for event in events:
        if isinstance(event, e.ModelRequested | e.AuxiliaryRequested):
            assert event.attempt_id not in found, f"{event.attempt_id} began twice"
            if isinstance(event, e.ModelRequested):
                span_id = ids.model_span(TENANT, job_id, event.step, event.attempt)
            else:
                span_id = ids.aux_span(TENANT, job_id, event.attempt_id)
            # Nobody may ever say how it ended.
            open_bounds = e.Bounds(lower_usd=NOTHING, upper_usd=event.worst_usd)
            found[event.attempt_id] = Call(job_id, span_id, None, open_bounds, "open")
        elif isinstance(event, ENDS):
            begun = found[event.attempt_id]
            assert begun.code == "open", f"{event.attempt_id} ended twice"
            found[event.attempt_id] = _ended(begun, event)
        elif isinstance(event, e.ToolRequested) and event.tool == ONCE:
            span_id = ids.tool_span(TENANT, job_id, event.step, event.call)
            open_bounds = e.Bounds(lower_usd=NOTHING, upper_usd=PAYMENT_USD)
            assert event.key not in found, f"{event.key} began twice"
            found[event.key] = Call(job_id, span_id, None, open_bounds, "open", tool=True)
        elif isinstance(event, e.ToolCompleted) and event.tool == ONCE:
            key = f"{TENANT}/{job_id}/{event.step}/{event.call}"
            if begun := found.get(key):
                assert begun.code == "open", f"{key} ended twice"
                found[key] = _paid(begun, event)
    return found


def _paid(begun: Call, event: e.ToolCompleted) -> Call:
    free = NOTHING if event.unsettled is None else None
    cost_usd = free if event.cost_usd is None else event.cost_usd
    code = event.error.code if event.error is not None else ""
    return Call(begun.job_id, begun.span_id, cost_usd, event.unsettled, code, tool=True)


def _ended(begun: Call, event: End) -> Call:
    if isinstance(event, e.ModelCompleted | e.AuxiliaryCompleted):
        return Call(begun.job_id, begun.span_id, event.cost_usd, event.unsettled, "no usage" if event.unsettled else "")
    free = NOTHING if event.usage is None and event.unsettled is None else event.cost_usd
    return Call(begun.job_id, begun.span_id, free, event.unsettled, event.error.code)


@dataclass
class Books:
    """All calls of a run, the provider's bill for them, and how often the paid tool acted."""

    calls: Mapping[str, Call]
    charges: list[Charge]
    acted: Mapping[str, int] = field(default_factory=dict)
    """By a call's key."""
    given_up: frozenset[str] = frozenset()
    """Jobs that ended as a crash loop: all that was held for them counts as not settled, also what is known."""
    billed: Mapping[str, Decimal] = field(init=False)

    def __post_init__(self) -> None:
        billed: dict[str, Decimal] = {}
        for charge in self.charges:
            billed[charge.attempt] = billed.get(charge.attempt, NOTHING) + charge.usd
        self.billed = billed | {key: n * PAYMENT_USD for key, n in self.acted.items()}

    @property
    def settled(self) -> dict[str, Decimal]:
        return {name: call.cost_usd for name, call in self.calls.items() if call.cost_usd is not None}

    @property
    def unsettled(self) -> dict[str, e.Bounds]:
        return {name: call.bounds for name, call in self.calls.items() if call.bounds is not None}

    @property
    def total(self) -> Decimal:
        return sum(self.settled.values(), NOTHING)

    def by_job(self, of: Mapping[str, Decimal]) -> dict[str, Decimal]:
        """Sums of every job, nothing included."""
        sums = {call.job_id: NOTHING for call in self.calls.values()}
        for name, usd in of.items():
            sums[self.calls[name].job_id] += usd
        return sums

    def upper(self) -> dict[str, Decimal]:
        return {name: bounds.upper_usd for name, bounds in self.unsettled.items() if bounds.upper_usd is not None}

    def against_the_bill(self) -> None:
        """The log and the provider: equal where the usage arrived, within the bounds where it did not."""
        twice = {name: n for name, n in Counter(charge.attempt for charge in self.charges).items() if n > 1}
        assert twice == {}, "an attempt was sent twice"
        assert {key: n for key, n in self.acted.items() if n > 1} == {}, "a `once` tool acted twice"
        assert set(self.billed) <= set(self.calls), "a call is on the bill and in no log"
        assert set(self.settled) | set(self.unsettled) == set(self.calls)
        assert set(self.settled) & set(self.unsettled) == set()
        assert self.settled == {name: self.billed.get(name, NOTHING) for name in self.settled}
        never_sent = {name: self.calls[name] for name in self.calls.keys() - self.billed.keys()}
        never_sent = {name: call for name, call in never_sent.items() if not call.tool}
        assert {call.code for call in never_sent.values()} <= UNSEEN, "a call is in a log and was never made"
        assert list(self._out_of_bounds()) == []
        unsure = sum((self.billed.get(name, NOTHING) for name in self.unsettled), NOTHING)
        lower = sum((bounds.lower_usd or NOTHING for bounds in self.unsettled.values()), NOTHING)
        assert lower <= unsure <= sum(self.upper().values(), NOTHING)
        assert self.total + unsure == sum(self.billed.values(), NOTHING)
        told = {charge.attempt for charge in self.charges if charge.usage_delivered}
        forgotten = {name: self.calls[name].code for name in told & set(self.unsettled)}
        assert set(forgotten.values()) <= UNSEEN, f"the usage was delivered, and not kept: {forgotten}"

    def _out_of_bounds(self) -> Iterator[str]:
        for name, bounds in self.unsettled.items():
            billed = self.billed.get(name, NOTHING)
            assert bounds.lower_usd is not None and bounds.upper_usd is not None, f"{name} has no bounds"
            if not bounds.lower_usd <= billed <= bounds.upper_usd:
                yield f"{name} ({self.calls[name].code}): {billed} is not in {bounds.lower_usd}..{bounds.upper_usd}"

    async def against_tracing(self, platform: FaultPlatform) -> None:
        """The log and what is read from tracing: the ledger and the spans, call by call."""
        rows = await platform.sql("SELECT * FROM tracing.ledger")
        charged = {name: usd for name, usd in self.settled.items() if usd or not self.calls[name].tool}
        assert {row["attempt_id"]: row["cost_usd"] for row in rows if row["settled"]} == charged
        bounds = {row["attempt_id"]: (row["lower_usd"], row["upper_usd"]) for row in rows if not row["settled"]}
        assert bounds == {
            f"{name}/unsettled" if self.calls[name].tool else name: (b.lower_usd, b.upper_usd)
            for name, b in self.unsettled.items()
        }
        assert [row["attempt_id"] for row in rows if row["open"]] == []
        spans = await platform.sql("SELECT span_id, cost_usd FROM tracing.spans WHERE cost_usd IS NOT NULL")
        priced = {self.calls[name].span_id: usd for name, usd in self.settled.items() if usd}
        assert {row["span_id"]: row["cost_usd"] for row in spans if row["cost_usd"]} == priced
        jobs = await platform.sql("SELECT job_id, cost_usd FROM tracing.jobs")
        assert {row["job_id"]: row["cost_usd"] for row in jobs} | self.by_job(self.settled) == {
            row["job_id"]: row["cost_usd"] for row in jobs
        }

    async def against_the_reservations(self, platform: FaultPlatform) -> None:
        """The log and what budgets were settled with, job by job and in sum."""
        rows = {row["job_id"]: row for row in await platform.sql("SELECT * FROM router.reservations")}
        assert {row["state"] for row in rows.values()} == {"settled"}
        nothing = dict.fromkeys(rows, NOTHING)
        settled, upper = nothing | self.by_job(self.settled), nothing | self.by_job(self.upper())
        unknown, known = dict.fromkeys(self.given_up), rows.keys() - self.given_up
        assert {job_id: row["settled_usd"] for job_id, row in rows.items()} == settled | unknown
        assert {job_id: rows[job_id]["unsettled_usd"] for job_id in known} == {
            job_id: upper[job_id] for job_id in known
        }
        held = {job_id: rows[job_id]["reserved_usd"] for job_id in self.given_up}
        assert {job_id: usd for job_id, usd in held.items() if usd < settled[job_id] + upper[job_id]} == {}, (
            "less is held for a job that was given up than it may have cost"
        )
        [window] = await platform.sql("SELECT * FROM router.budget_windows")
        spent = sum((settled[job_id] for job_id in known), NOTHING)
        unsure = sum((upper[job_id] for job_id in known), sum(held.values(), NOTHING))
        assert (window["spent_usd"], window["reserved_usd"], window["unsettled_usd"]) == (spent, NOTHING, unsure)
        assert window["unsettled_jobs"] == len(self.given_up)


def exported(page: str) -> dict[str, Decimal]:
    """Samples of a metrics page, summed over their labels, to the nano-dollar."""
    sums: dict[str, Decimal] = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            name, value = line.split("{")[0].split(" ")[0], line.rpartition(" ")[2]
            sums[name] = sums.get(name, NOTHING) + _decimal(value)
    return {name: usd.quantize(NANO_USD) for name, usd in sums.items()}


def _decimal(value: Any) -> Decimal:
    found = Decimal(str(float(value)))
    return found if found.is_finite() else NOTHING
