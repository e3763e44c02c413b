"""Every example of the README and the docs can be typed as it stands: commands, requests, Python and JSON."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from urllib.parse import urlsplit

import pytest
import typer
from jsonschema import Draft202012Validator
from typer.main import get_command

from wayline.gateway.application import application
from wayline.gateway.settings import Settings
from wayline.standalone.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("examples/**/*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
CUT = "…"
"""Stands for what a reader fills in: such an example is shown in part."""
PROGRAM = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*(?:\.venv/bin/)?(wayline|curl)(?= |$)")
WRONG_WORDS: Any = typer.BadParameter.__mro__[1]
"""What the command line raises for all words that it does not take."""
ENDS = {"|", "||", "&&", ";", ">", ">>", "&", "2>", "<"}


def blocks(page: Path, language: str) -> Iterator[str]:
    """Yield the code blocks of a page in a language; '': those that name none."""
    for indent, named, text in BLOCK.findall(page.read_text()):
        if named == language:
            yield "\n".join(line.removeprefix(indent) for line in text.splitlines())


def shell_commands(page: Path, program: str) -> list[list[str]]:
    """Return the words of each command of a program in the blocks of a page, without those after a pipe."""
    found: list[list[str]] = []
    for text in (*blocks(page, ""), *blocks(page, "sh"), *blocks(page, "bash")):
        lines = text.split("\n")
        while lines:
            line = lines.pop(0)
            match = PROGRAM.match(line)
            if match is None or match[1] != program:
                continue
            # A command goes on over a backslash, and until its quotes are closed.
            while lines and (line.endswith("\\") or not closed(line)):
                line = line.removesuffix("\\") + ("" if line.endswith("\\") else "\n") + lines.pop(0)
            words = shlex.split(line.removeprefix("$ "), comments=True)
            start = next(number for number, word in enumerate(words) if word.rpartition("/")[2] == program)
            end = next((number for number, word in enumerate(words) if number > start and word in ENDS), len(words))
            found.append(words[start + 1 : end])
    return found


def closed(line: str) -> bool:
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return False
    return True


def every(program: str) -> list[Any]:
    return [
        pytest.param(words, id=f"{page.name}-{' '.join(words)[:60]}")
        for page in PAGES
        for words in shell_commands(page, program)
    ]


@cache
def command_tree() -> Any:
    """Return all commands: to make them of their functions takes a tenth of a second."""
    return get_command(app)


def problem_of(words: list[str]) -> str:
    """Return why the command line does not take these words; empty: it does."""
    command = command_tree()
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    try:
        left = command.make_context("wayline", list(words)).args
    except WRONG_WORDS as error:
        # The reader has the file; this test has not.
        return "" if "does not exist" in str(error) else error.format_message()
    return f"there is no {left[0]!r}" if left else ""


@pytest.mark.parametrize("words", every("wayline"))
def test_a_command_that_is_shown_takes_its_words(words: list[str]):
    assert problem_of(words) == ""


@pytest.mark.parametrize(
    "words", [["run", "x", "--nope"], ["budgets", "sett", "a"], ["jobs", "fork"], ["run", "x", "--lane", "fast"]]
)
def test_a_command_with_wrong_words_is_found(words: list[str]):
    assert problem_of(words) != ""


@cache
def described() -> dict[str, Any]:
    """Return the description of the HTTP interface."""
    gateway = MagicMock()
    gateway.settings, gateway.telemetry.provider = Settings(), None
    served: Any = application(gateway)
    while not hasattr(served, "openapi"):
        served = served._app
    return served.openapi()


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """Return what the description says of a request, whose path is filled in."""
    for template, operations in described()["paths"].items():
        pattern = re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path) and method.lower() in operations:
            return operations[method.lower()]
    return None


def request_of(words: list[str]) -> tuple[str, str, str | None]:
    """Return the method, the address and the body of a call of curl."""
    method, body, address = None, None, ""
    given = iter(words)
    for word in given:
        if word in {"-X", "--request"}:
            method = next(given)
        elif word in {"-d", "--data"}:
            body = next(given)
        elif word in {"-F", "--form"}:
            method = method or "POST"
            next(given)
        elif word in {"-H", "-o", "--header"}:
            next(given)
        elif not word.startswith("-"):
            address = word
    return method or ("GET" if body is None else "POST"), address, body


@pytest.mark.parametrize("words", every("curl"))
def test_a_request_that_is_shown_is_one_of_the_interface(words: list[str]):
    method, address, body = request_of(words)
    full = address.replace("$WAYLINE_URL", "http://localhost:8080")
    parts = urlsplit(full if "://" in full else f"http://{full}")
    if not parts.path.startswith("/v1/"):
        return

    operation = operation_of(method, parts.path)
    assert operation is not None, (method, parts.path)
    known = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"}
    assert {pair.partition("=")[0] for pair in parts.query.split("&") if pair} <= known
    if body is not None and CUT not in body and not body.startswith("@"):
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        checked = Draft202012Validator({**schema, "components": described()["components"]})
        assert [error.message for error in checked.iter_errors(json.loads(body))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_that_is_shown_can_be_read(page: Path):
    for text in blocks(page, "python"):
        compile(text, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_json_that_is_shown_can_be_read(page: Path):
    for text in blocks(page, "json"):
        if CUT not in text:
            json.loads(text)


@pytest.mark.parametrize(
    "words",
    [
        ["-X", "PUT", "localhost:8080/v1/agents/a", "-d", '{"instruction": "misspelled"}'],
        ["localhost:8080/v1/nothing"],
        ["localhost:8080/v1/jobs?nobody=1"],
    ],
)
def test_a_request_that_the_interface_has_not_is_found(words: list[str]):
    with pytest.raises(AssertionError):
        test_a_request_that_is_shown_is_one_of_the_interface(words)
