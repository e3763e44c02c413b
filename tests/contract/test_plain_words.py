"""Sentences and names are plain: verbs first in docstrings, classes named by nouns of the field, the actor is named."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEMBERS = sorted(path for folder in ("libs", "services") for path in (ROOT / folder).iterdir() if path.is_dir())
NO_VERBS = set(
    "a all also an and any anything as at both by each every everything failed for four from here how if in it its "
    "neither never no none nothing of on one only or some something that the their there these this those three to two "
    "what when where whether which who whose why with without".split()
)
"""First words of sentences about a thing; one about what a function does begins with its verb."""
NO_CLASSES = set(
    "asked desk door given hand hands home kept pen quiet room said say seen stage wish word world".split()
)
"""Names that are no noun of the field, of classes, modules and packages."""
OF_SCRIPTS = {"Asked", "Say"}
"""A simulator's script reads as a dialogue: `turns(Say(...), Say(...))`."""
NO_PARTS_OF_CLASSES = set("desk door pen room wish".split())
HIDING = re.compile(r"\b(?:whoever|somebody|what it says)\b", re.IGNORECASE)
"""Words that hide who acts."""
CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)
every_member = pytest.mark.parametrize("member", MEMBERS, ids=lambda path: path.name)


def modules(member: Path) -> list[Path]:
    return sorted((member / "src").rglob("*.py"))


def functions(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the docstring of each function that has one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
            yield node.name, text


def classes(path: Path) -> list[str]:
    """Return the names of a module's classes."""
    return CLASS.findall(path.read_text())


def begins_with_a_verb(docstring: str) -> bool:
    """Return whether a docstring's first word may be a verb in the imperative."""
    first = docstring.split(maxsplit=1)[0].rstrip(",.:;")
    return first.isalpha() and first.lower() not in NO_VERBS


def is_riddle(name: str) -> bool:
    """Return whether a class is named by none of the field's nouns."""
    parts = {part.lower() for part in re.findall(r"[A-Z][a-z]+", name)}
    return name not in OF_SCRIPTS and (name.strip("_").lower() in NO_CLASSES or bool(parts & NO_PARTS_OF_CLASSES))


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [("Return the cost.", True), ("The cost of a call.", False), ("`cost`: of a call.", False), ("A cost.", False)],
)
def test_a_docstring_that_begins_with_no_verb_is_found(docstring: str, expected: bool):
    assert begins_with_a_verb(docstring) is expected


@pytest.mark.parametrize(("name", "expected"), [("LogWriter", False), ("_Pen", True), ("UploadRoom", True)])
def test_a_class_that_is_named_by_a_riddle_is_found(name: str, expected: bool):
    assert is_riddle(name) is expected


@every_member
def test_docstrings_of_functions_begin_with_a_verb(member: Path):
    # A constructor's docstring explains its arguments.
    found = [
        f"{path.relative_to(member)}: {name}: {text.splitlines()[0]}"
        for path in modules(member)
        for name, text in functions(path)
        if name != "__init__" and not begins_with_a_verb(text)
    ]

    assert found == []


@every_member
def test_classes_are_named_by_nouns_of_the_field(member: Path):
    named = [f"{path.relative_to(member)}: {name}" for path in modules(member) for name in classes(path)]

    assert [one for one in named if is_riddle(one.rpartition(" ")[2])] == []


@every_member
def test_modules_are_named_by_nouns_of_the_field(member: Path):
    assert [path for path in modules(member) if {path.stem, path.parent.name} & NO_CLASSES] == []


@every_member
def test_sentences_of_a_member_say_who_acts(member: Path):
    # A migration is never edited once it is merged.
    queries = [path for path in (member / "src").rglob("*.sql") if path.parent.name != "migrations"]

    assert hiding([member / "README.md", *modules(member), *queries]) == []


def test_sentences_of_the_documentation_say_who_acts():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), ROOT / "tests/README.md"]

    assert hiding(pages) == []


def hiding(paths: list[Path]) -> list[str]:
    """Return the lines that have a word which hides who acts."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted(paths)
        if HIDING.search(text := path.read_text())
        for number, line in enumerate(text.splitlines(), start=1)
        if HIDING.search(line)
    ]
