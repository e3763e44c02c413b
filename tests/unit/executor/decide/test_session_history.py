"""What a job goes on with in its session."""

from __future__ import annotations

from wayline.contracts import events as e
from wayline.contracts.chat import TextPart, UserMessage
from wayline.contracts.jobs import Failure
from wayline.executor.decide.session_history import continues
from wayline.journal import handed_on, with_history

from ..logs import ROUTE, Log

HISTORY = (UserMessage(parts=(TextPart(text="why?"),)),)


def test_a_density_is_handed_on_to_the_same_model():
    segment = e.Segment(part="messages", hash="h", count=1, tokens=8)
    tail = Log().ask(1, prefix=(segment,)).answer("so").job
    same, rerouted = Log(), Log()
    rerouted.say(e.JobRerouted, route=ROUTE.model_copy(update={"model": "sister"}), cause="escalation")

    assert continues(same.job, tail, HISTORY)["density"] == 1.25
    assert continues(rerouted.job, tail, HISTORY)["density"] is None


def test_a_refused_turn_is_not_handed_on():
    log = Log().ask(1).answer("I cannot help.", stop="refused")
    log.say(e.JobFailed, error=Failure(code="refused", message="it refused"))
    tail = with_history(log.job, HISTORY, is_unbound=False)

    pinned = continues(Log().job, tail, handed_on(tail))

    assert handed_on(tail) == HISTORY
    assert (pinned["messages"], pinned["call"], pinned["tokens"]) == (1, None, None)
    assert pinned["after"].without_refused
    # As the histories were pinned that earlier builds have handed on.
    assert len(handed_on(tail, refused_too=True)) == 3
