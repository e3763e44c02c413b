"""`wayline simulate` as a process: what it prints, what it answers, how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import aiohttp
import pytest

from wayline.testkit import until
from wayline.testkit.service_starts import finish_command, start_command

SCRIPT = """
from wayline.simulator import Say

def script(asked):
    return Say(text=f"You are number {asked.number}.")
"""


@contextmanager
def simulate(*arguments: str):
    """The running command."""
    command = [sys.executable, "-m", "wayline.standalone", "simulate", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=10)


async def test_simulate_serves_until_ctrl_c_and_prints_the_would_be_cost(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    with simulate("--port", "0", "--json", "--latency-ms", "1", "--script", str(file)) as process:
        assert process.stdout is not None
        variables = json.loads(process.stdout.readline())["environment"]
        url = f"{variables['ANTHROPIC_BASE_URL']}/v1/messages"
        body = {"model": "claude-haiku-5-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        async with aiohttp.ClientSession(headers={"x-api-key": variables["ANTHROPIC_API_KEY"]}) as session:
            async with session.post(url, json=body) as response:
                answer = await response.json()
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate(timeout=30)

    assert answer["content"] == [{"type": "text", "text": "You are number 1."}]
    assert set(variables) >= {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "WAYLINE_CHAT_BASE_URL"}
    assert (process.returncode, rest) == (0, "")
    assert told == "1 requests; they would have cost $0.000004400\n"


async def test_simulate_prints_variables_to_paste(tmp_path):
    printed = tmp_path / "printed"
    process = start_command("simulate", "--port", "0", cwd=tmp_path, log=printed, env=os.environ)
    await until(lambda: printed.read_text().count("\n") >= 5, within=60, why="the variables are printed")
    await process.kill()
    first, _, *rest = printed.read_text().splitlines()

    assert first.startswith("Simulated providers at http://127.0.0.1:")
    models, embeddings = first.strip().partition("Models: ")[2].split(". Embeddings: ")
    assert {"anthropic/claude-haiku-5-5", "chat/local-chat", "openai/gpt-6-luna"} < set(models.split(", "))
    assert "local-embedding" in embeddings.split(", ")
    assert rest[0].startswith("export ANTHROPIC_BASE_URL=http://127.0.0.1:")


@pytest.mark.parametrize("trouble", ["port", "script", "nothing in it"])
def test_an_error_is_one_line_that_says_what_to_do(trouble, tmp_path):
    empty = tmp_path / "empty.py"
    empty.write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        arguments, expected = {
            "port": (("--port", str(taken.getsockname()[1])), "--port"),
            "script": (("--script", str(tmp_path / "none.py")), "is not a Python file"),
            "nothing in it": (("--script", str(empty)), "has no function `script(asked)`"),
        }[trouble]
        done = finish_command("simulate", *arguments, cwd=tmp_path, env=os.environ, stdin="", within_s=60)

    assert done.returncode == 1
    assert done.stderr.startswith("wayline: ")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
