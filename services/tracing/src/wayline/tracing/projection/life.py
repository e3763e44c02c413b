"""What the job's own events make of its root span: where it was sent, what befell it, how it ended."""

from __future__ import annotations

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.headers import TRACEPARENT
from wayline.journal import Job
from wayline.telemetry import names, remote
from wayline.tracing.job_metrics import JobEnded, JobTaken, predicted
from wayline.tracing.projection import genai
from wayline.tracing.projection.drafts import millis
from wayline.tracing.projection.job_drafts import JobDrafts
from wayline.tracing.projection.model_calls import interrupt


def submitted(drafts: JobDrafts, event: e.JobSubmitted, _: Job) -> None:
    """Name the job's agent and its schedule, and link the caller; a child stands under the call that started it."""
    genai.name_agent(drafts.root, event.job)
    if event.parent is not None:
        above = event.parent
        drafts.root.parent = ids.tool_span(drafts.tenant, above.job_id, above.step, above.call)
    caller = remote({TRACEPARENT: event.caller}) if event.caller else None
    if caller:
        drafts.root.links.append({"trace_id": f"{caller.trace_id:032x}", "span_id": f"{caller.span_id:016x}"})
    if event.schedule:
        drafts.root.attributes[names.SCHEDULE] = event.schedule.schedule
    drafts.change_span(drafts.root, event)


def routed(drafts: JobDrafts, event: e.JobRouted, _: Job) -> None:
    """Name where the router sent the job."""
    genai.name_policy(drafts.root, event)
    genai.name_route(drafts.root, event.route)
    drafts.change_span(drafts.root, event)


def forked(drafts: JobDrafts, event: e.JobForked, _: Job) -> None:
    """Link the job that this one branched off."""
    origin = event.origin
    trace_id, span_id = ids.trace_id(drafts.tenant, origin.job_id), ids.job_span(drafts.tenant, origin.job_id)
    drafts.root.links.append({"trace_id": trace_id, "span_id": span_id})
    drafts.root.note("forked", event.at, job_id=origin.job_id, seq=origin.seq)
    drafts.change_span(drafts.root, event)


def rerouted(drafts: JobDrafts, event: e.JobRerouted, _: Job) -> None:
    """Note that another model goes on."""
    if event.cause == "classification":
        # Where the router itself would have sent it: the others are what befell it on its way.
        genai.name_route(drafts.root, event.route)
    drafts.root.note("rerouted", event.at, cause=event.cause, model=event.route.name, reason=event.route.reason)
    drafts.change_span(drafts.root, event)


def classified(drafts: JobDrafts, event: e.TaskClassified, _: Job) -> None:
    """Note what type of task it is."""
    drafts.root.note("classified", event.at, task_type=event.task_type, reason=event.reason)
    drafts.change_span(drafts.root, event)


def claimed(drafts: JobDrafts, event: e.JobClaimed, job: Job) -> None:
    """Note who goes on with the job, and the first time how long it waited for that."""
    if job.life.epoch == 0 and job.life.submitted is not None:
        drafts.facts.append(JobTaken(job.life.submitted.options.lane, millis(drafts.root.start, event.at) / 1_000))
    drafts.unpark(event)
    drafts.root.note("claimed", event.at, executor=event.executor, epoch=event.epoch)
    drafts.change_span(drafts.root, event)


def continued(drafts: JobDrafts, event: e.SessionContinued, _: Job) -> None:
    """Note what the job goes on with in its session."""
    after = event.after.job_id if event.after else ""
    drafts.root.note("continued", event.at, after=after, messages=event.messages, lost=event.lost or "")
    drafts.change_span(drafts.root, event)


def handed_back(drafts: JobDrafts, event: e.JobHandedBack, _: Job) -> None:
    """Note that the holder gave the job back alive."""
    drafts.root.note("handed back", event.at, reason=event.reason)
    drafts.change_span(drafts.root, event)


def parked(drafts: JobDrafts, event: e.JobParked, _: Job) -> None:
    """Note that the job waits, from now on."""
    drafts.parked_at = event.at
    drafts.root.note("parked", event.at, why=event.waiting.why)
    drafts.change_span(drafts.root, event)


def resumed(drafts: JobDrafts, event: e.JobResumed, _: Job) -> None:
    """Note that the job waits no more."""
    drafts.unpark(event)
    drafts.root.note("resumed", event.at)
    drafts.change_span(drafts.root, event)


def signalled(drafts: JobDrafts, event: e.CancelRequested | e.BudgetRaised | e.DecisionMade, _: Job) -> None:
    """Note a signal that the job read."""
    drafts.root.note(event.type, event.at, by=event.by)
    drafts.change_span(drafts.root, event)


def ended(drafts: JobDrafts, event: e.JobCompleted | e.JobFailed | e.JobCancelled, job: Job) -> None:
    """Close whatever is open, the root last."""
    drafts.unpark(event)
    error = event.error.code if isinstance(event, e.JobFailed) else None
    outcome = event.type.removeprefix("job.")
    interrupt(drafts, event, error=error or outcome, status="error" if error else "unset")
    for step in drafts.open_steps:
        drafts.cut_off(step, event, failed=error is not None, cause=error or outcome)
    root = drafts.root
    root.attributes[genai.JOB_STATUS] = outcome
    root.close(event.at, {"completed": "ok", "failed": "error"}.get(outcome, "unset"), error=error)
    drafts.change_span(root, event)
    # An agent that was never found is a word of the client's, not a label.
    agent = job.life.submitted.agent if job.life.submitted and job.routing.config else "-"
    drafts.facts.append(
        JobEnded(
            outcome,
            agent,
            millis(root.start, event.at) / 1_000,
            *predicted(event, job.routing.route),
            tool_tokens_saved=job.money.costs.tool_tokens_saved,
        )
    )
