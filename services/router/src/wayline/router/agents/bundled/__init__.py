"""The agents that every tenant has from the start."""

from __future__ import annotations

from importlib.resources import files

from wayline.contracts.agents import AgentConfig
from wayline.contracts.assemblers import TASK_PLAN
from wayline.contracts.tools import TASK_TOOLS

ORCHESTRATOR = "task-orchestrator"


def bundled() -> dict[str, AgentConfig]:
    """Return the bundled agents by name; their instructions are the Markdown files beside this one."""
    return {
        "assistant": AgentConfig(
            description="Answers questions from the documents you have ingested, with citations.",
            instructions=_instructions("assistant"),
            style="balanced",
            max_steps=5,
        ),
        ORCHESTRATOR: AgentConfig(
            description="Plans tasks for an outcome: what each needs, what can be done at once, in which order.",
            instructions=_instructions(ORCHESTRATOR),
            temperature=0.2,
            max_output_tokens=4_000,
            max_steps=10,
            adapt_steps=False,
            tools=TASK_TOOLS,
            output_schema=TASK_PLAN,
            assemble="task_plan",
            on_invalid="empty",
        ),
    }


def _instructions(name: str) -> str:
    return files(__name__).joinpath(f"{name}.md").read_text()
