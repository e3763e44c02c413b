"""What others wrote for OpenAI's API talks to an agent: the npm packages in package.json, and OpenAI's agents SDK."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from wayline.simulator.chat_server import Say

from ..integration.openai_api.conftest import Doors
from ..npm import installed, node

WITHIN_S = 120
EXPECTED = {"openai error": "404 model_not_found model", "openai embeddings": 1536, "langchain embed": 1536}
"""What is answered otherwise than by the words of the agent."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(WITHIN_S + 60)]


BOTH = (("weather", {"city": "Bonn"}), ("weather", {"city": "Rome"}))
TOLD = "wet in Bonn and wet in Rome"


def with_tools(body: dict[str, Any]) -> Say:
    """Ask for the weather of two cities where the client has such a tool, and say what it returned."""
    returned = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if returned:
        return Say(text=" and ".join(returned))
    return Say(tools=BOTH) if body.get("tools") else Say(text="Yes.")


async def asked(doors: Doors, *command: str) -> dict[str, Any]:
    """Return what a program prints that asks the agent."""
    doors.say[0] = with_tools
    asking = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "OPENAI_BASE_URL": doors.base_url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(WITHIN_S):
        told, errors = await asking.communicate()
    assert asking.returncode == 0, errors.decode()
    answers: dict[str, Any] = orjson.loads(told)
    return answers


async def test_npm_clients_of_openai_are_answered_by_an_agent(doors: Doors):
    # Packages are found beside the file that imports them.
    here = Path(shutil.copy(Path(__file__).with_name("clients.mjs"), installed("openai_clients")))

    answers = await asked(doors, node(), str(here))

    assert len(answers) >= 24
    for name, answer in answers.items():
        expected = TOLD if "tools" in name else EXPECTED.get(name, "Yes.")
        assert answer == expected or (name == "langchain responses" and "Yes." in answer), (name, answer)


async def test_openais_agents_sdk_runs_tools_for_an_agent(doors: Doors):
    program = Path(__file__).with_name("agents_client.py")

    answers = await asked(doors, str(installed("openai_agents") / "bin/python"), str(program))

    assert len(answers) == 6
    assert {name: TOLD if "tools" in name else "Yes." for name in answers} == answers
