"""What a shell asks to complete a command line, and what the command answers it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wayline.testkit.walks import cases

SHELLS = ("bash", "zsh", "fish")


def wayline(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from wayline.standalone.cli import main; main()", *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("shell", cases(SHELLS))
def test_a_script_is_printed_for_each_shell(shell: str):
    printed = wayline("completion", shell)

    assert printed.returncode == 0, printed.stderr
    assert "_WAYLINE_COMPLETE" in printed.stdout and "wayline" in printed.stdout


def test_another_shell_is_refused_with_those_that_there_are():
    refused = wayline("completion", "tcsh")

    assert refused.returncode == 2
    assert all(shell in refused.stderr for shell in SHELLS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("wayline sess", {"sessions"}),
        ("wayline budgets ", {"list", "set", "remove"}),
        ("wayline run --prov", {"--provider-patience"}),
        ("wayline completion ", set(SHELLS)),
    ],
)
def test_the_words_that_fit_are_answered_to_bash(line: str, expected: set[str]):
    words = line.split(" ")
    asked = {"_WAYLINE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}

    assert set(wayline(**asked).stdout.split()) == expected
