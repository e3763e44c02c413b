"""What `make first-run` does follows from README.md alone."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType


def test_the_commands_of_a_first_run_are_those_of_the_readme(first_run: ModuleType, repository: Path):
    readme = (repository / "README.md").read_text()
    doors = first_run.doors_of(readme)

    assert first_run.blocks_of(readme)[0].commands.splitlines()[0] == first_run.RUN
    assert list(doors) == ["curl", "wayline", "NATS"]
    assert doors["wayline"].commands == 'wayline run "Your question"'
    assert all(f"127.0.0.1:{port}" in readme for port in first_run.PORTS)


def test_what_a_first_run_looks_for_is_in_the_readmes_picture(first_run: ModuleType, repository: Path):
    printed = first_run.blocks_of((repository / "README.md").read_text())[1].text

    missing = [what for what, pattern in first_run.SEEN.items() if not re.search(pattern, printed, re.M)]
    assert missing == []
