"""What a job goes on with in its session."""

from __future__ import annotations

from wayline.contracts import events as e
from wayline.contracts.chat import TextPart, UserMessage
from wayline.executor.decide.session_history import continues

from ..logs import ROUTE, Log

HISTORY = (UserMessage(parts=(TextPart(text="why?"),)),)


def test_a_density_is_handed_on_to_the_same_model():
    segment = e.Segment(part="messages", hash="h", count=1, tokens=8)
    tail = Log().ask(1, prefix=(segment,)).answer("so").job
    same, rerouted = Log(), Log()
    rerouted.say(e.JobRerouted, route=ROUTE.model_copy(update={"model": "sister"}), cause="escalation")

    assert continues(same.job, tail, HISTORY)["density"] == 1.25
    assert continues(rerouted.job, tail, HISTORY)["density"] is None
