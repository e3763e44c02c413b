"""How much tool search finds, how many definition tokens it saves, and whether a script picks its tools as well.

    python -m tests.evals.tool_search [--write docs/tools.md]

The sets are in WAYLINE_SHARED, or in `shared` beside the repository; without them it says so and writes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from tests.bench import page

from ..shared import path
from .embedder import MODEL, python
from .measures import Found, choice, found_by_words, found_with_model, saved_shares
from .tool_sets import BEST_BM25, BEST_BM25_COMPLETE, CALLS, CUTS, load

SIZES = (20, 200, 500)
MADE_BY, PART = "make tool-search", "recall and tokens"


def report() -> str:
    """Measure everything, as two tables."""
    head = ["set", "tools, tasks", "search", *(f"recall@{cut}" for cut in CUTS), f"all of a task in {max(CUTS)}"]
    recalls = page.table(head, [row for name in BEST_BM25 for row in _recalls(name)])
    head = [f"{size} tools: {what}" for size in SIZES for what in ("tokens saved", "right pick, of all → with search")]
    return f"{recalls}\n" + page.table(["set", *head], [list(_offered(name)) for name in (*BEST_BM25, CALLS)])


def _recalls(name: str) -> Iterator[list[str]]:
    judged = load(name)
    about = [name.removeprefix("tools-"), f"{len(judged.tools):,}, {len(judged.tasks):,}"]
    yield [*about, "words, the default", *_figures(found_by_words(judged))]
    yield ["", "", f"words and {MODEL}", *_figures(found_with_model(judged))]
    yield ["", "", "BM25", *_figures(Found(BEST_BM25[name], BEST_BM25_COMPLETE[name]))]


def _figures(found: Found) -> list[str]:
    return [*(f"{found.recall[cut]:.3f}" for cut in CUTS), f"{found.complete:.3f}"]


def _offered(name: str) -> Iterator[str]:
    yield name.removeprefix("tools-")
    for size in SIZES:
        saved = saved_shares(name, size)
        yield f"{min(saved):.0%} to {max(saved):.0%}"
        if name == CALLS:
            yield ""
        else:
            picked = choice(load(name), size)
            yield f"{picked.of_all:.1%} → {picked.with_search:.1%} of {picked.tasks:,}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", type=Path, help="the page whose tables are replaced")
    write: Path | None = arguments.parse_args().write
    missing = [name for name in (*BEST_BM25, CALLS) if not path(name).exists()]
    if missing:
        print(f"not measured: {', '.join(missing)} not in {path()}; set WAYLINE_SHARED")
        return
    if not python().exists():
        print("not measured: the embedding model is not installed; run `make tool-search`")
        return
    text = report()
    print(text)
    if write is not None:
        page.write(write, PART, text, by=MADE_BY)


if __name__ == "__main__":
    main()
