"""What is said of a job that waits for a person: one sentence, with where to decide."""

from __future__ import annotations

from wayline.contracts.jobs import JobView


def waiting_sentence(job: JobView, *, base: str) -> str:
    """Return what a parked job waits for, and the address where that is decided."""
    waiting, here = job.waiting_for, f"{base}/v1/jobs/{job.job_id}"
    assert waiting is not None
    if waiting.why == "approval" and waiting.approvals:
        tools = ", ".join(one.tool for one in waiting.approvals)
        links = " and ".join(f"{here}/approvals/{one.approval_id}" for one in waiting.approvals)
        return f"I wait for a person to approve {tools}: decide with POST {links}."
    if waiting.why == "budget":
        return f"I have used up what I may spend: POST {here}/budget lets me go on."
    asked = f" {waiting.question}" if waiting.question else ""
    decide = f"Decide with POST {here}/answers/{waiting.wait_id}."
    return f"I wait for a person to say what became of a tool call.{asked} {decide}"
