"""What a row allows, as a table."""

from __future__ import annotations

import itertools

import pytest

from wayline.contracts.tools import Effect, ToolReply
from wayline.tool_registry.calls.ledger import NextStep, Row, State, next_step


def row(state: State = State.STARTED, effect: Effect = Effect.ONCE, **more) -> Row:
    values = {"attempt": 1, "owner": "another", "live": False, "late": False, **more}
    return Row(state=state, effect=effect, **values)


@pytest.mark.parametrize(
    ("seen", "allowed"),
    [
        (row(State.FINISHED, result=ToolReply(status="success")), NextStep.STORED),
        (row(State.UNKNOWN), NextStep.UNKNOWN),
        (row(live=True), NextStep.WAIT),
        (row(effect=Effect.IDEMPOTENT, live=True, late=True), NextStep.WAIT),
        (row(effect=Effect.ONCE), NextStep.GIVE_UP),
        (row(effect=Effect.IDEMPOTENT), NextStep.AGAIN),
        (row(effect=Effect.READ), NextStep.LOSE),
        (row(effect=Effect.RECONCILE), NextStep.ASK_TOOL),
        (row(effect=Effect.RECONCILE, late=True), NextStep.GIVE_UP),
        (row(effect=Effect.IDEMPOTENT, attempt=3), NextStep.GIVE_UP),
    ],
)
def test_a_row_allows_one_thing(seen, allowed):
    assert next_step(seen, attempts_max=3) is allowed


def test_nothing_ever_allows_a_once_tool_again():
    rows = (
        row(state, Effect.ONCE, attempt=attempt, live=live, late=late)
        for state, attempt, live, late in itertools.product(State, range(5), (True, False), (True, False))
    )

    assert not {next_step(seen, attempts_max=9) for seen in rows} & {NextStep.AGAIN, NextStep.ASK_TOOL}
