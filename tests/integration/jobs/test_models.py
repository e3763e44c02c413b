"""A tenant's models through the front door: gateway, router, and the command line."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from wayline.router.settings import Settings as RouterSettings

CARD = {"provider": "chat", "model": "acme/large:8b", "tier": "standard", "context_window": 40_000}


async def test_a_model_is_added_listed_shown_and_removed_from_the_command_line(platform, tmp_path: Path):
    await platform.start("gateway", "router", router=RouterSettings(chat_base_url="http://127.0.0.1:11434/v1"))
    (tmp_path / "card.json").write_text(json.dumps(CARD))

    async def wayline(*words: str, code: int = 0) -> str:
        run = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "wayline.standalone", "models", *words),
            env={**os.environ, "WAYLINE_URL": f"http://127.0.0.1:{platform.http_port}"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, wrong = await asyncio.wait_for(run.communicate(), 60)
        assert run.returncode == code, wrong.decode()
        return said.decode() + wrong.decode()

    added = json.loads(await wayline("add", str(tmp_path / "card.json"), "--json"))
    listed = json.loads(await wayline("list", "--json"))
    shown = await wayline("show", "chat/acme/large:8b")
    table = await wayline("list")
    removed = await wayline("remove", "chat/acme/large:8b")

    assert (added["prices"], added["context_window"]) == (None, 40_000)
    assert listed["own"] == ["chat/acme/large:8b"]
    assert listed["usable"] == ["chat/acme/large:8b", "offline/extractive"]
    assert "price" in shown and "unknown" in shown
    (row,) = [line for line in table.splitlines() if "acme/large" in line]
    assert row.split() == ["chat/acme/large:8b", "standard", "40,000", "unknown", "unknown", "unknown", "own"]
    assert "removed" in removed
    assert "no model 'chat/acme/large:8b'" in await wayline("show", "chat/acme/large:8b", code=1)
