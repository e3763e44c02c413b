"""Diffs of documentation by real commits on the console's card: every line is as git has it, or the text as it is."""

from __future__ import annotations

from typing import Any

import pytest

from wayline.console.render.diffs.card import DiffCard, card_of
from wayline.console.render.environment import Templates

from .shared import rows

ALL_LINES = 10**9
BOTH = pytest.mark.parametrize("split", [False, True], ids=["unified", "side by side"])


def html_of(card: DiffCard, *, split: bool) -> str:
    components: Any = Templates()._environment.get_template("components_diff.html").module
    return str(components.diff_card(card, split=split, most=ALL_LINES))


def lines_of(text: str | None) -> list[str]:
    """Return a file's lines as git counts them."""
    return [line.removesuffix("\r") for line in (text or "").split("\n")]


def wrong_lines(card: DiffCard, files: list[dict[str, Any]], *, split: bool) -> list[tuple[str, int, str]]:
    """Return what the card's rows say that does not stand in that line of the file before or after."""
    by_name = {one["new"] or one["old"]: one for one in files}
    wrong = list[tuple[str, int, str]]()
    for shown in card.shown(split=split, most=ALL_LINES):
        file = by_name.get(shown.diff.name) or next(one for one in files if shown.diff.name.endswith(one["new"]))
        before, after = lines_of(file["before"]), lines_of(file["after"])
        for _, found in shown.hunks:
            for row in found:
                for cell, side in ((row.old, before), (row.new, after)):
                    if cell is None:
                        continue
                    text = "".join(piece.text for piece in cell.pieces).rstrip("\r\n")
                    if text != side[cell.number - 1]:
                        wrong.append((shown.diff.name, cell.number, text))
    return wrong


@BOTH
def test_every_diff_of_documents_is_shown_as_git_has_it(split: bool):
    wrong, raw = list[Any](), 0
    for one in rows("diffs-docs", "diffs.jsonl.gz"):
        card = card_of(one["diff"])
        assert card is not None, one["commit"]
        if card.problem:
            raw += 1
            wrong += [] if card.raw == one["diff"] and not card.files else [(one["commit"], card.problem)]
            continue
        counts = [(file["added"] or 0, file["deleted"] or 0) for file in one["files"]]
        wrong += [] if [(file.added, file.removed) for file in card.files] == counts else [(one["commit"], counts)]
        wrong += wrong_lines(card, one["files"], split=split)
        html = html_of(card, split=split)
        wrong += [] if html.count('class="diff-file"') == len(counts) and ' style="' not in html else [one["commit"]]

    assert (wrong, raw) == ([], 0)


@BOTH
def test_both_versions_of_every_document_are_compared_line_by_line(split: bool):
    wrong, compared = list[Any](), 0
    for one in rows("diffs-docs", "diffs.jsonl.gz"):
        for file in one["files"]:
            name = file["new"] or file["old"]
            card = card_of({"path": name, "before": file["before"] or "", "after": file["after"] or ""})
            if card is None or file["before"] == file["after"]:
                continue
            compared += 1
            wrong += wrong_lines(card, [{**file, "new": name}], split=split)

    assert wrong == [] and compared >= 300
