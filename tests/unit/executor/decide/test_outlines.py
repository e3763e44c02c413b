"""What stands for the middle of a conversation where no model could be asked for a summary."""

from __future__ import annotations

from wayline.contracts import events as e
from wayline.contracts.chat import NoteMessage
from wayline.contracts.working_context import KnownEntity, WorkingContext
from wayline.executor.decide import compaction
from wayline.executor.decide.compaction import note

from ..logs import Log


def test_an_outline_of_an_outline_repeats_no_heading():
    known = WorkingContext(entities=(KnownEntity(type="page", id="1", name="A", tool="t"),))
    log = Log().ask().answer("", "t").result()
    for _ in range(4):
        text = compaction.outline(log.job, 0)
        log.say(e.ContextCompacted, note=note(text, known, tainted=True), kept=0)

    summary = log.job.conversation.messages[-1]

    assert isinstance(summary, NoteMessage)
    text = summary.text
    assert [text.count(words) for words in (compaction.HEADING, compaction.STRANGERS, "Known by now.")] == [1, 1, 1]
    assert text.count("- t: ") == 1
