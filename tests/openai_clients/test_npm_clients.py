"""What others wrote for OpenAI's API talks to an agent: the npm packages in package.json."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import orjson
import pytest

from ..integration.openai_api.conftest import Doors
from ..npm import installed, node

WITHIN_S = 120
EXPECTED = {"openai error": "404 model_not_found model", "openai embeddings": 1536, "langchain embed": 1536}
"""What is answered otherwise than by the words of the agent."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow, pytest.mark.timeout(WITHIN_S + 60)]


async def test_npm_clients_of_openai_are_answered_by_an_agent(doors: Doors):
    # Packages are found beside the file that imports them.
    here = Path(shutil.copy(Path(__file__).with_name("clients.mjs"), installed("openai_clients")))
    asking = await asyncio.create_subprocess_exec(
        *(node(), str(here)),
        env={**os.environ, "OPENAI_BASE_URL": doors.base_url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(WITHIN_S):
        told, errors = await asking.communicate()

    assert asking.returncode == 0, errors.decode()
    answers = orjson.loads(told)
    assert len(answers) >= 15
    for name, answer in answers.items():
        expected = EXPECTED.get(name, "Yes.")
        assert answer == expected or (name == "langchain responses" and "Yes." in answer), (name, answer)
