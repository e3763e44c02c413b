"""The pages say what is so: their links lead somewhere, their commands and variables exist; so do those of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

from wayline.standalone.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "tests/README.md")),
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
NAMED = re.compile(rf"(?<![\w/])(?:{FOLDERS})/[\w./-]+\.(?:py|md|svg|yml|json)")
MODULE = re.compile(r"(?<!\[)`([\w./-]+\.py)`")
"""A file in backticks; one in a link is checked as a link."""
SOURCES = [path.relative_to(ROOT).as_posix() for path in (*CODE, *ROOT.glob("tests/**/*.py"))]
NAMES_MODULES = [page for page in PAGES if page.parts[-2] == "decisions" or page.parts[-3] in {"libs", "services"}]
LINES_OFF_MAX = 0.05
"""How far the number of lines in decision 5 may be from what its command prints."""

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@cache
def known_commands() -> frozenset[tuple[str, ...]]:
    """Return every command, as the words after `wayline`: the tree takes a tenth of a second."""
    return frozenset(commands(get_command(app)))


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every command of the tree, as the words after `wayline`."""
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


@pytest.mark.parametrize("page", NAMES_MODULES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_is_named_is_in_its_member(page: Path):
    member = "" if page.parent.name == "decisions" else f"{page.parent.relative_to(ROOT).as_posix()}/"
    own = [path for path in SOURCES if path.startswith(member)]
    named = [name for name in MODULE.findall(page.read_text()) if not (ROOT / name).exists()]

    assert [name for name in named if not any(path.endswith(f"/{name}") for path in own)] == []


def test_decision_5_counts_the_lines_that_its_command_prints():
    page = (ROOT / "docs/decisions/0005-our-own-handlers-on-nats-py.md").read_text()
    written = int(re.findall(r"about ([\d,]+) lines", page)[0].replace(",", ""))
    folder, files = re.findall(r"`cd (\S+) && cat ([^|]+) \| wc -l`", page)[0]
    lines = sum(path.read_bytes().count(b"\n") for name in files.split() for path in (ROOT / folder).glob(name))

    assert abs(lines - written) / lines <= LINES_OFF_MAX


@every_page
def test_every_command_that_is_named_exists(page: Path):
    named_commands = {tuple(words.split()) for words in COMMAND.findall(page.read_text())}

    assert named_commands - known_commands() == set()


def test_every_command_that_the_code_tells_of_exists():
    known = known_commands()
    groups = {words[0] for words in known if len(words) == 2}
    told = [(path, words) for path in CODE for words in QUOTED.findall(path.read_text())]

    # After a command that is no group, the next word is what it is given.
    named = {(path.name, words if words[0] in groups and words[1] else words[:1]) for path, words in told}
    assert {(name, words) for name, words in named if words not in known} == set()


@every_page
def test_every_variable_that_is_named_is_a_setting(page: Path, settings: dict[str, Any]):
    client = {"WAYLINE_URL", "WAYLINE_API_KEY"}
    compose = set(
        re.findall(r"(?:mem_limit|stop_grace_period): \$\{(\w+):-", (ROOT / "docker-compose.yml").read_text())
    )
    others = {
        "WAYLINE_POSTGRES_ADDRESS",
        "WAYLINE_FAILPOINT",
        "WAYLINE_TENANT",
        "WAYLINE_BIND",
        "WAYLINE_COMMIT",
        "WAYLINE_SHARED",
        "WAYLINE_FAULT_SEED",
        *client,
    }
    named_variables = set(re.findall(r"\bWAYLINE_[A-Z0-9_]*[A-Z0-9]\b(?!…)", page.read_text()))

    assert named_variables - settings.keys() - others - compose == set()


@every_page
def test_every_make_target_that_is_named_exists(page: Path):
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named_targets = set(re.findall(r"(?:^|`)make ([a-z0-9-]+)", page.read_text(), re.MULTILINE))

    assert named_targets - targets == set()


def test_the_configuration_tables_are_what_the_settings_say(configuration: ModuleType):
    written = configuration.PAGE.read_text()

    assert configuration.page(written) == written, "run `make proto`"


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_every_decision_names_the_test_that_holds_it(page: Path):
    ending = page.read_text().rstrip().split("\n\n")[-1]

    assert re.fullmatch(r"Held by:( |\n)(tests/[\w/]+\.py(,( |\n))?)+", ending)
    assert page.name in (page.parent / "README.md").read_text()


def test_every_part_of_the_bench_has_its_place_on_the_page():
    run = re.findall(r"-m tests\.bench\.(\w+) --write docs/performance\.md", (ROOT / "Makefile").read_text())
    placed = re.findall(
        r"<!-- made by `make (?:console-)?bench`, (\w+): begin -->", (ROOT / "docs/performance.md").read_text()
    )

    assert sorted(placed) == sorted(run)


def test_contributing_lists_every_library_and_service():
    listed = (ROOT / "CONTRIBUTING.md").read_text().partition("```")[2].partition("```")[0].split()
    members = {path.name for folder in ("libs", "services") for path in (ROOT / folder).iterdir() if path.is_dir()}

    assert members - set(listed) == set()


def test_every_word_of_the_glossary_stands_once_and_in_order():
    words = re.findall(r"^\*\*([^*]+)\*\*:", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)

    assert words == sorted(set(words), key=str.lower)
