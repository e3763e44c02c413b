"""What the job's own events make of its root span: where it was sent, what befell it, how it ended."""

from __future__ import annotations

from wayline.contracts import events as e
from wayline.contracts.headers import TRACEPARENT
from wayline.journal import Job
from wayline.telemetry import remote
from wayline.tracing import genai
from wayline.tracing.drafts import millis
from wayline.tracing.drawing.canvas import Canvas
from wayline.tracing.drawing.model_calls import interrupt
from wayline.tracing.facts import JobEnded, predicted


def submitted(canvas: Canvas, event: e.JobSubmitted, _: Job) -> None:
    """Name the job's agent, and link the caller's span."""
    genai.name_agent(canvas.root, event.job)
    caller = remote({TRACEPARENT: event.caller}) if event.caller else None
    if caller:
        canvas.root.links.append({"trace_id": f"{caller.trace_id:032x}", "span_id": f"{caller.span_id:016x}"})
    canvas.change(canvas.root, event)


def routed(canvas: Canvas, event: e.JobRouted, _: Job) -> None:
    """Name where the router sent the job."""
    genai.name_policy(canvas.root, event)
    genai.name_route(canvas.root, event.route)
    canvas.change(canvas.root, event)


def rerouted(canvas: Canvas, event: e.JobRerouted, _: Job) -> None:
    """Write down that another model goes on."""
    if event.cause == "classification":
        # Where the router itself would have sent it: the others are what befell it on its way.
        genai.name_route(canvas.root, event.route)
    canvas.root.note("rerouted", event.at, cause=event.cause, model=event.route.name, reason=event.route.reason)
    canvas.change(canvas.root, event)


def classified(canvas: Canvas, event: e.TaskClassified, _: Job) -> None:
    """Write down what type of task it is."""
    canvas.root.note("classified", event.at, task_type=event.task_type, reason=event.reason)
    canvas.change(canvas.root, event)


def claimed(canvas: Canvas, event: e.JobClaimed, _: Job) -> None:
    """Write down who goes on with the job."""
    canvas.unpark(event)
    canvas.root.note("claimed", event.at, executor=event.executor, epoch=event.epoch)
    canvas.change(canvas.root, event)


def handed_back(canvas: Canvas, event: e.JobHandedBack, _: Job) -> None:
    """Write down that the holder gave the job back alive."""
    canvas.root.note("handed back", event.at, reason=event.reason)
    canvas.change(canvas.root, event)


def parked(canvas: Canvas, event: e.JobParked, _: Job) -> None:
    """Write down that the job waits, from now on."""
    canvas.parked_at = event.at
    canvas.root.note("parked", event.at, why=event.waiting.why)
    canvas.change(canvas.root, event)


def resumed(canvas: Canvas, event: e.JobResumed, _: Job) -> None:
    """Write down that the job waits no more."""
    canvas.unpark(event)
    canvas.root.note("resumed", event.at)
    canvas.change(canvas.root, event)


def told(canvas: Canvas, event: e.CancelRequested | e.BudgetRaised | e.DecisionMade, _: Job) -> None:
    """Write down what somebody told the job."""
    canvas.root.note(event.type, event.at, by=event.by)
    canvas.change(canvas.root, event)


def ended(canvas: Canvas, event: e.JobCompleted | e.JobFailed | e.JobCancelled, job: Job) -> None:
    """Close whatever is open, the root last."""
    canvas.unpark(event)
    error = event.error.code if isinstance(event, e.JobFailed) else None
    outcome = event.type.removeprefix("job.")
    interrupt(canvas, event, error=error or outcome, status="error" if error else "unset")
    for step in canvas.open_steps:
        canvas.cut_off(step, event, failed=error is not None, cause=error or outcome)
    root = canvas.root
    root.attributes[genai.JOB_STATUS] = outcome
    root.close(event.at, {"completed": "ok", "failed": "error"}.get(outcome, "unset"), error=error)
    canvas.change(root, event)
    # An agent that was never found is a word of the client's, not a label.
    agent = job.submitted.agent if job.submitted and job.config else "-"
    canvas.facts.append(JobEnded(outcome, agent, millis(root.start, event.at) / 1_000, *predicted(event, job.route)))
