"""The examples of docs/openai.md run as they stand there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from wayline.simulator.chat_server import Say

from .conftest import Doors

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

PAGE = (Path(__file__).parents[3] / "docs/openai.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


async def test_every_example_of_the_page_runs(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("OPENAI_BASE_URL", doors.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none yet")
    await doors.save("assistant")

    def say(body: dict[str, Any]) -> Say:
        asks = body.get("tools") and all(message["role"] != "tool" for message in body["messages"])
        return Say(tools=(("weather", {"city": "Bonn"}),)) if asks else Say(text="So it is.")

    doors.say[0] = say
    assert len(EXAMPLES) >= 6
    for example in EXAMPLES:
        await asyncio.to_thread(exec, compile(example, "docs/openai.md", "exec"), {})
        told = capsys.readouterr().out
        assert ("text-embedding" if "embeddings" in example else "So it is.") in told, example
