"""The agents that every tenant has from the start."""

from __future__ import annotations

from importlib.resources import files

from wayline.contracts.agents import AgentConfig


def bundled() -> dict[str, AgentConfig]:
    """Return the bundled agents by name; their instructions are the Markdown files beside this one."""
    return {
        "assistant": AgentConfig(
            description="Answers questions from the documents you have ingested, with citations.",
            instructions=files(__name__).joinpath("assistant.md").read_text(),
            style="balanced",
            max_steps=5,
        )
    }
