"""The pages say what is so: their links lead somewhere, their commands and variables exist; so do those of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

from wayline.standalone.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("libs/*/README.md")),
    *sorted(ROOT.glob("services/*/README.md")),
]
CODE = [*sorted(ROOT.glob("libs/**/*.py")), *sorted(ROOT.glob("services/**/*.py"))]
DECISIONS = sorted(ROOT.glob("docs/decisions/0*.md"))

COMMAND = re.compile(
    r"(?:^|`|bin/)wayline ((?:jobs |dead-letters |documents |agents |models |budgets |router |schedules )?"
    r"[a-z][a-z-]+)",
    re.MULTILINE,
)
QUOTED = re.compile(r"`wayline ([a-z][a-z-]+)(?: ([a-z][a-z-]+))?")
FOLDERS = "tests|docs|proto|deploy|tools|services|libs"
NAMED = re.compile(rf"(?:{FOLDERS})/[\w./-]+\.(?:py|md|svg|yml|json)")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command of the tree, as the words after `wayline`."""
    for name, command in getattr(group, "commands", {}).items():
        yield (*path, name)
        yield from commands(command, (*path, name))


@every_page
def test_every_link_leads_to_something(page: Path):
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())]

    assert [at for at in links if at and "://" not in at and not (page.parent / at).exists()] == []


@every_page
def test_every_file_that_is_named_is_there(page: Path):
    named = NAMED.findall(page.read_text())

    assert [path for path in set(named) if not (ROOT / path).exists()] == []


@every_page
def test_every_command_that_is_named_exists(page: Path):
    known = set(commands(get_command(app)))
    said = {tuple(words.split()) for words in COMMAND.findall(page.read_text())}

    assert said - known == set()


def test_every_command_that_the_code_tells_of_exists():
    known = set(commands(get_command(app)))
    groups = {words[0] for words in known if len(words) == 2}
    told = [(path, words) for path in CODE for words in QUOTED.findall(path.read_text())]

    # After a command that is no group, the next word is what it is given.
    named = {(path.name, words if words[0] in groups and words[1] else words[:1]) for path, words in told}
    assert {(name, words) for name, words in named if words not in known} == set()


@every_page
def test_every_variable_that_is_named_is_a_setting(page: Path, settings: dict[str, Any]):
    client = {"WAYLINE_URL", "WAYLINE_API_KEY"}
    others = {"WAYLINE_FAILPOINT", "WAYLINE_TENANT", "WAYLINE_BIND", "WAYLINE_SHARED", "WAYLINE_FAULT_SEED", *client}
    said = set(re.findall(r"\bWAYLINE_[A-Z0-9_]*[A-Z0-9]\b(?!…)", page.read_text()))

    assert said - settings.keys() - others == set()


@every_page
def test_every_make_target_that_is_named_exists(page: Path):
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    said = set(re.findall(r"(?:^|`)make ([a-z0-9-]+)", page.read_text(), re.MULTILINE))

    assert said - targets == set()


def test_the_configuration_tables_are_what_the_settings_say(configuration: ModuleType):
    written = configuration.PAGE.read_text()

    assert configuration.page(written) == written, "run `make proto`"


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_every_decision_names_the_test_that_holds_it(page: Path):
    ending = page.read_text().rstrip().split("\n\n")[-1]

    assert re.fullmatch(r"Held by:( |\n)(tests/[\w/]+\.py(,( |\n))?)+", ending)
    assert page.name in (page.parent / "README.md").read_text()


def test_every_word_of_the_glossary_stands_once_and_in_order():
    words = re.findall(r"^\*\*([^*]+)\*\*:", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)

    assert words == sorted(set(words), key=str.lower)
