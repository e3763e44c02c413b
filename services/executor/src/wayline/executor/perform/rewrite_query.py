"""Has a helper model write the query of a follow-up anew; else what the model asked for is searched as it stands."""

from __future__ import annotations

from collections.abc import Sequence

from wayline.contracts import events as e
from wayline.contracts.jobs import Failure
from wayline.executor.decide import query_rewrite
from wayline.executor.decide.actions import Rewrite
from wayline.executor.hold.log_writer import Draft, draft
from wayline.executor.perform.auxiliary_call import AuxiliaryCall, NotMade, ask_aside, next_aux_id, not_made
from wayline.executor.perform.job_run import JobRun
from wayline.llm import Finished

NO_ROOM = "the model that could be asked has too small a window"


async def rewrite(run: JobRun, action: Rewrite) -> Sequence[Draft]:
    """Ask what a search is to find, and return what came of it: the query stays where nothing did."""
    job, call = run.writer.job, action.call
    step, number = job.model.step, call.wanted.call

    def stays(why: str) -> Draft:
        return draft(e.QueryRewritten, step=step, call=number, rewritten=False, reason=why)

    if action.card is None:
        return (stays(action.why),)
    request = query_rewrite.question(action.card, job, call, attempt_id=next_aux_id(job))
    if request is None:
        return (stays(NO_ROOM),)

    def answered(finished: Finished) -> Sequence[Draft]:
        read = query_rewrite.read_query(finished.message.text, query_rewrite.query_of(call))
        if finished.stop_reason != "end" or not read.query:
            return (stays(read.why or "the model's answer was cut"),)
        return (draft(e.QueryRewritten, step=step, call=number, rewritten=True, query=read.query),)

    about = f"{step}/{number}"
    question = AuxiliaryCall("rewrite", request, query_rewrite.SECONDS_MAX, about=about, share_of_budget=True)
    ended = await ask_aside(run, question, answered)
    if isinstance(ended, NotMade):
        return (not_made(run.writer.job, question, ended), stays(ended.why))
    failed = next((fields["error"] for kind, _, fields in ended if kind is e.AuxiliaryFailed), None)
    return ended if not isinstance(failed, Failure) else (*ended, stays(failed.message))
