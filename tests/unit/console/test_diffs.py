"""Unified diffs: a hundred of them, read whole or shown as they are, and never half."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from wayline.console.render.diffs.card import card_of, of_versions
from wayline.console.render.diffs.diff_rows import COMPARED_MAX_LINES, compared, marked, rows_of
from wayline.console.render.diffs.unified_diff import FileDiff, NotADiff, parse
from wayline.console.render.environment import Templates

HUNK = "@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"
NAMES = "--- a/x.md\n+++ b/x.md\n"
GIT = "diff --git a/x.md b/x.md\n"
INDEX = "index 1111111..2222222 100644\n"
GOOD: dict[str, tuple[str, list[tuple[str, str, int, int]]]] = {
    "plain": (NAMES + HUNK, [("changed", "x.md", 1, 1)]),
    "git": (GIT + INDEX + NAMES + HUNK, [("changed", "x.md", 1, 1)]),
    "times": ("--- x.md\t2026-05-01\n+++ x.md\t2026-05-02\n" + HUNK, [("changed", "x.md", 1, 1)]),
    "subversion": ("Index: x.md\n" + "=" * 60 + "\n" + NAMES + HUNK, [("changed", "x.md", 1, 1)]),
    "new": (
        GIT + "new file mode 100644\n" + INDEX + "--- /dev/null\n+++ b/x.md\n@@ -0,0 +1,2 @@\n+one\n+two\n",
        [("new", "x.md", 2, 0)],
    ),
    "deleted": (
        GIT + "deleted file mode 100644\n" + INDEX + "--- a/x.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n",
        [("deleted", "x.md", 0, 1)],
    ),
    "empty and new": (GIT + "new file mode 100644\n" + INDEX, [("new", "x.md", 0, 0)]),
    "mode": (GIT + "old mode 100644\nnew mode 100755\n", [("mode changed", "x.md", 0, 0)]),
    "renamed": (
        "diff --git a/x.md b/y z.md\nsimilarity index 100%\nrename from x.md\nrename to y z.md\n",
        [("renamed", "x.md → y z.md", 0, 0)],
    ),
    "renamed and changed": (
        "diff --git a/x.md b/y.md\nsimilarity index 90%\nrename from x.md\nrename to y.md\n"
        + INDEX
        + "--- a/x.md\n+++ b/y.md\n"
        + HUNK,
        [("renamed", "x.md → y.md", 1, 1)],
    ),
    "copied": (
        "diff --git a/x.md b/y.md\nsimilarity index 100%\ncopy from x.md\ncopy to y.md\n",
        [("copied", "x.md → y.md", 0, 0)],
    ),
    "binary": (
        "diff --git a/a.png b/a.png\n" + INDEX + "Binary files a/a.png and b/a.png differ\n",
        [("changed", "a.png", 0, 0)],
    ),
    "binary with data": (
        "diff --git a/a.png b/a.png\n"
        + INDEX
        + "GIT binary patch\nliteral 3\nKcmZQzU|?i`00aR4\n\nliteral 0\nHcmV?d00001\n\n",
        [("changed", "a.png", 0, 0)],
    ),
    "no newline": (
        NAMES + "@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+ONE\n\\ No newline at end of file\n",
        [("changed", "x.md", 1, 1)],
    ),
    "carriage returns": (NAMES + "@@ -1,2 +1,2 @@\n one\r\n-two\r\n+TWO\r\n", [("changed", "x.md", 1, 1)]),
    "empty lines": (NAMES + "@@ -1,3 +1,3 @@\n one\n\n-two\n+TWO\n", [("changed", "x.md", 1, 1)]),
    "two hunks": (NAMES + HUNK + "@@ -9 +9,2 @@ ## Heading\n nine\n+ten\n", [("changed", "x.md", 2, 1)]),
    "two files": (
        GIT + INDEX + NAMES + HUNK + (GIT + INDEX + NAMES + HUNK).replace("x.md", "y.md"),
        [("changed", "x.md", 1, 1), ("changed", "y.md", 1, 1)],
    ),
    "quoted": (
        'diff --git "a/caf\\303\\251.md" "b/caf\\303\\251.md"\n'
        + INDEX
        + '--- "a/caf\\303\\251.md"\n+++ "b/caf\\303\\251.md"\n'
        + HUNK,
        [("changed", "café.md", 1, 1)],
    ),
    "spaces": ((GIT + INDEX + NAMES + HUNK).replace("x.md", "a b/c d.md"), [("changed", "a b/c d.md", 1, 1)]),
    "lines like heads": (NAMES + "@@ -1,2 +1,2 @@\n one\n--- a\n+++ b\n", [("changed", "x.md", 1, 1)]),
}
SPOILT = {
    "an end too early": lambda text: text.rstrip("\n").rpartition("\n")[0] + "\n",
    "a line too many": lambda text: text + "+ and one more\n",
    "a stranger's line": lambda text: text + "The model says: done.\n",
    "a line before it": lambda text: "Here it is:\n" + text,
}


def summary(files: list[FileDiff]) -> list[tuple[str, str, int, int]]:
    return [(one.what, one.name, one.added, one.removed) for one in files]


@pytest.mark.parametrize("name", GOOD)
def test_a_diff_is_read_whole(name: str):
    text, expected = GOOD[name]

    assert summary(parse(text)) == expected
    written = [line for one in parse(text) for hunk in one.hunks for line in hunk.lines()]
    assert sum(line.kind == "added" for line in written) == sum(added for _, _, added, _ in expected)


@pytest.mark.parametrize(("spoil", "name"), list(itertools.product(SPOILT, GOOD)), ids="-".join)
def test_a_spoilt_diff_is_shown_as_it_is(spoil: str, name: str):
    text = SPOILT[spoil](GOOD[name][0])
    try:
        files = parse(text)
    except NotADiff:
        shown = card_of(text)
        assert shown is None or ((shown.files, shown.raw) == ((), text) and shown.problem)
        return
    # What is left is a diff of its own: every line of it is in a hunk or a note.
    assert spoil == "an end too early" and sum(len(one.hunks) + len(one.notes) for one in files) > 0


@pytest.mark.parametrize(
    "text", ["", "no diff", "--- a\n", "--- a\n+++ b\n", "@@ -1 +1 @@\n-a\n+b\n", "--- a\n\n---\n"]
)
def test_other_texts_are_no_diffs(text: str):
    with pytest.raises(NotADiff):
        parse(text)
    assert card_of(text) is None


def sides(found: FileDiff, *, split: bool) -> tuple[list[str], list[str]]:
    """The lines of both versions, as the rows show them."""
    rows = [row for hunk in found.hunks for row in rows_of(hunk, split=split)]
    old = ["".join(piece.text for piece in row.old.pieces) for row in rows if row.old]
    new = ["".join(piece.text for piece in row.new.pieces) for row in rows if row.new]
    return old, new


LINES = st.lists(st.sampled_from(["", "a", "b", "a b c d e f", "a b c d e g", "z" * 9]), max_size=12)


@given(before=LINES, after=LINES, split=st.booleans())
@settings(max_examples=200, deadline=None)
def test_both_versions_are_whole_in_their_rows(before: list[str], after: list[str], split: bool):
    found = compared("\n".join(before), "\n".join(after))
    old, new = sides(found, split=split)
    changed_old = [line.text for hunk in found.hunks for line in hunk.lines() if line.kind != "added"]
    changed_new = [line.text for hunk in found.hunks for line in hunk.lines() if line.kind != "removed"]

    assert (old, new) == (changed_old, changed_new)
    for hunk in found.hunks:
        for line in hunk.lines():
            assert line.old is None or (before or [""])[line.old - 1] == line.text
            assert line.new is None or (after or [""])[line.new - 1] == line.text
    card = of_versions("\n".join(before), "\n".join(after), name="x")
    if card is not None:
        assert summary(parse(card.raw)) == summary(list(card.files))


def test_only_the_words_that_differ_are_marked():
    old, new = marked("the cat sat here", "the dog sat here")

    assert [piece.text for piece in old if piece.is_marked] == ["cat"]
    assert [piece.text for piece in new if piece.is_marked] == ["dog"]
    assert marked("alpha", "1, 2, 3") == ((), ())


def test_long_texts_with_little_in_common_are_compared_at_once():
    before = "\n".join(f"old {n}" for n in range(COMPARED_MAX_LINES + 5))
    after = "\n".join(f"new {n}" for n in range(10))
    found = compared(before, after)

    assert (found.added, found.removed) == (10, COMPARED_MAX_LINES + 5)


def html_of(value: Any, **more: Any) -> str:
    environment: Environment = Templates()._environment
    card = card_of(value)
    assert card is not None
    return str(environment.get_template("components_diff.html").module.diff_card(card, **more))  # type: ignore[attr-defined]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", ["two files", "no newline", "binary", "quoted"])
def test_a_card_shows_every_file_in_both_forms(name: str, split: bool):
    html = html_of(GOOD[name][0], split=split)

    assert [shown for _, shown, _, _ in GOOD[name][1] if shown not in html] == []
    assert "style=" not in html


def test_a_card_of_two_versions_runs_nothing():
    payload = "<script>alert(1)</script>\u202e"
    html = html_of({"path": payload, "old_string": "a\nb", "new_string": f"a\n{payload}"})

    assert "<script" not in html and "\u202e" not in html and "⟦U+202E⟧" in html


def test_of_a_long_diff_the_first_lines_are_shown():
    body = "".join(f"-old {n}\n+new {n}\n" for n in range(5_000))
    html = html_of(f"{NAMES}@@ -1,5000 +1,5000 @@\n{body}", whole="/jobs/j/diff/4", file="/jobs/j/diff/4.patch")

    assert html.count("<tr>") == 400
    assert "9,600 more lines" in html and "/jobs/j/diff/4.patch" in html
