"""Notices: what happened beside the logs of jobs, kept until the notifier has taken it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from wayline.contracts.base import Message, Usd


class BudgetAlerted(Message, subject="notices.budget.{tenant}"):
    """A budget has reached a threshold of its alerts, once a window."""

    budget: str
    threshold: Usd = Field(description="The share that was reached: 0.8.")
    used_usd: Usd
    limit_usd: Usd
    starts_at: datetime = Field(description="Of the window.")
    at: datetime

    @property
    def msg_id(self) -> str:
        """Return the id of this alert."""
        return f"budget/{self.tenant}/{self.budget}/{self.starts_at.timestamp()}/{self.threshold}"


class ToolChanged(Message, subject="notices.tool.{tenant}"):
    """A server offers another definition of a tool than the one that was approved; the tool waits for a person."""

    server: str
    tool: str = Field(description="Empty: the instructions of the server.")
    definition_sha256: str = Field(description="Of what it offers now.")
    at: datetime

    @property
    def msg_id(self) -> str:
        """Return the id of this change."""
        return f"tool/{self.tenant}/{self.server}/{self.tool}/{self.definition_sha256}"


class JobNamedWebhook(Message, subject="notices.webhook.{tenant}"):
    """A job is about to begin that names an address of its own; told before its first record is written.

    While an installation has no webhook, the notifier reads no records: this is what makes it read those of the job.
    """

    job_id: str

    @property
    def msg_id(self) -> str:
        """Return the id of this notice."""
        return f"webhook/{self.tenant}/{self.job_id}"
