"""Has a helper model choose the best of what a search found, and shows the model these; else what was found stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wayline.contracts import events as e
from wayline.contracts.jobs import Failure
from wayline.contracts.reranking import FoundPassages
from wayline.contracts.tools import ToolReply
from wayline.executor.decide import rerank as ranking
from wayline.executor.decide.actions import Rerank
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.auxiliary_call import AuxiliaryCall, NotMade, ask_aside, next_aux_id, not_made
from wayline.executor.perform.job_run import JobRun
from wayline.executor.prompt.context_window import result_room
from wayline.executor.prompt.shorten import shown
from wayline.journal import words_of
from wayline.llm import Finished

NO_ROOM = "the model that could be asked has too small a window"


async def rerank(run: JobRun, action: Rerank) -> Sequence[Draft]:
    """Ask for the best passages of a search, and return what came of it: its own order stays where nothing did."""
    done, found = action.done, action.done.found
    if action.card is None or found is None:
        return (_stays(done, action.why),)
    request = ranking.question(action.card, done, attempt_id=next_aux_id(run.writer.job))
    if request is None:
        return (_stays(done, NO_ROOM),)

    def answered(finished: Finished) -> Sequence[Draft]:
        order = ranking.order_of(found, finished.message.text)
        if finished.stop_reason != "end" or isinstance(order, str):
            return (_stays(done, order if isinstance(order, str) else "the model's answer was cut"),)
        return (_chosen(run, done, found, order),)

    about = f"{done.step}/{done.call}"
    call = AuxiliaryCall("rerank", request, ranking.SECONDS_MAX, about=about, share_of_budget=True)
    ended = await ask_aside(run, call, answered)
    if isinstance(ended, NotMade):
        return (not_made(run.writer.job, call, ended), _stays(done, ended.why))
    failed = next((fields["error"] for kind, _, fields in ended if kind is e.AuxiliaryFailed), None)
    return ended if not isinstance(failed, Failure) else (*ended, _stays(done, failed.message))


def _stays(done: e.ToolCompleted, why: str) -> Draft:
    return draft(e.PassagesReranked, step=done.step, call=done.call, reranked=False, reason=why)


def _chosen(run: JobRun, done: e.ToolCompleted, found: FoundPassages, order: tuple[int, ...]) -> Draft:
    """Return what the model is shown: the chosen passages, in the form in which the first ones would have been."""
    job = run.writer.job
    definition = job.tools.definition(done.tool)
    # Who wrote any passage that the helper read may have had a hand in the choice.
    strangers = words_of(definition) == "strangers" or done.words == "strangers"
    reply = ToolReply(status="success", content=found.shown(order), strangers=strangers)
    tokens_max = result_room(job, run.services.result_tokens_max)
    fields: dict[str, Any] = shown(job, done.tool, reply, step=done.step, call=done.call, tokens_max=tokens_max)
    return draft(
        e.PassagesReranked,
        step=done.step,
        call=done.call,
        reranked=True,
        order=order,
        content=fields["content"],
        citations=tuple(found.passages[at].citation for at in order),
    )
