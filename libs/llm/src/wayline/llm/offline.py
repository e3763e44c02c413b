"""The offline model: no network, no key. It searches, then answers by quoting; it says so, and it does not reason."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import NamedTuple

from wayline.contracts.chat import AssistantMessage, Citation, ImagePart, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.money import Usage
from wayline.llm.model import Finished, ModelError, ModelRequest, Piece, TextDelta
from wayline.llm.offline_planner import plan, plans
from wayline.llm.tokens import estimate, estimate_request

PROVIDER = "offline"
SEARCH = "search_knowledge"
LABEL = "(Answered by the extractive offline model: it quotes passages, it does not reason.)"
PASSAGES_ASKED = 5
QUOTES_MAX = 3
QUOTE_CHARS_MAX = 420
COVERED_MIN = 0.55
"""The share of a question's words, weighed by how rare they are, that a passage must hold to count as an answer."""
PROSE_MIN = 0.6
"""Of the words that the best stretch of a passage holds, the share that its sentences must hold to be quoted."""
TITLE_WORDS_MAX = 8
COVERED_MIN_UNWEIGHED = 0.5
"""The same where the search does not say: every word weighs alike."""

NAMES_MAX = 0.67
"""The share of a question's words that may be names; above it capitals say nothing."""
NAME_COVERS = 0.17
"""How much more a passage must hold for each name that it lacks, or it would answer about the wrong thing. Measured."""
COMMON_NAME_MIN = 2
"""Passages that hold a name which the others need not hold: the name of what all documents are about."""

_WORD = re.compile(r"[A-Za-z0-9_]+(?:[.'-][A-Za-z0-9_]+)*|[^\W\d_]+")
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[\"'(\[A-Z0-9`*-])|\n{2,}|\n(?=[-*#|>])")
_LINE = re.compile(r"[^\n]+")
# A heading or what underlines one, a row of a table, a fence.
_FRAGMENT = re.compile(r"#{1,6}\s|\||.*\s\|\s.*\||[-=*_~`|:+ ]{3,}$|```|~~~")
_COMMON = frozenset(
    """
    a about all also am an and any are as at be because been but by can could describe did do does
    explain for from get give had happens has have how i if in into is it its just many may me more most
    much my no not of on one or our out over please shall should show so some tell than that the their
    them then there these they this to too under up us use used using very was we were what when where
    which while who whom why will with would you your
    """.split()
)


class OfflineModel:
    """Behind the same protocol as every provider: asks for `search_knowledge`, reads the result, quotes it."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece]:
        message = respond(request)
        for piece in re.findall(r"\S+\s*", message.text):
            yield TextDelta(piece)
        written = message.text if message.text else message.model_dump_json(include={"tool_calls"})
        usage = Usage(input=estimate_request(request), output=estimate(written))
        yield Finished(message, usage, "tools" if message.tool_calls else "end")

    async def close(self) -> None:
        return None


def respond(request: ModelRequest) -> AssistantMessage:
    """Search when nothing was found yet, else answer with quotes."""
    asked_at = max(n for n, message in enumerate(request.messages) if isinstance(message, UserMessage))
    asked = request.messages[asked_at]
    assert isinstance(asked, UserMessage)
    users = (message for message in request.messages if isinstance(message, UserMessage))
    if any(isinstance(part, ImagePart) for message in users for part in message.parts):
        raise ModelError(
            "unsupported_input", "the offline model cannot see images; choose a model that can", retryable=False
        )
    question = " ".join(part.text for part in asked.parts if isinstance(part, TextPart)).strip()
    found = [message for message in request.messages[asked_at:] if isinstance(message, ToolMessage)]
    if plans(request):
        return plan(asked, found)
    if found:
        return _answer(question, [message for message in found if message.tool == SEARCH])
    if any(tool.name == SEARCH for tool in request.tools):
        return AssistantMessage(tool_calls=(_search(question, asked),))
    return AssistantMessage(text=f"I have no {SEARCH} tool here, and without it I know nothing. {LABEL}")


def _search(question: str, asked: UserMessage) -> ToolCall:
    arguments: dict[str, object] = {"query": question, "top_k": PASSAGES_ASKED}
    files = [part.document_id for part in asked.parts if part.type == "file"]
    if files:
        arguments["document_ids"] = files
    return ToolCall(call="1", tool=SEARCH, arguments=arguments)


def _answer(question: str, results: list[ToolMessage]) -> AssistantMessage:
    failed = [result for result in results if result.failed]
    if failed:
        return AssistantMessage(text=f"The search failed: {failed[-1].content} {LABEL}")
    passages = [citation for result in results for citation in result.citations]
    quotes = _quotes(question, passages)
    if not quotes:
        return AssistantMessage(text=f"The knowledge base does not answer this question. {LABEL}")
    # Verbatim in the citation, on one line in the answer.
    text = "\n\n".join(f"“{' '.join(quote.quote.split())}” — {quote.document}" for quote in quotes)
    return AssistantMessage(text=f"{text}\n\n{LABEL}", citations=tuple(quotes))


class _Ranked(NamedTuple):
    covered: float
    order: int
    quote: Citation


def _quotes(question: str, passages: list[Citation]) -> list[Citation]:
    """Return the best stretch of each passage, best covered first; none where no passage covers the question."""
    wanted = _stems(question)
    if not wanted:
        return []
    held = [_stems(f"{passage.document} {passage.quote}") for passage in passages]
    names = frozenset(name for name in _names(question) if sum(name in stems for stems in held) < COMMON_NAME_MIN)
    ranked: list[_Ranked] = []
    for order, passage in enumerate(passages):
        whole = len(wanted & held[order]) / len(wanted)
        if not _answers(passage, whole, missing=len(names - held[order])):
            continue
        # What the document's name says is said of each of its sentences.
        named = wanted & _stems(passage.document)
        rest = wanted - named or wanted
        stretch, covered = _stretch(passage.quote, rest)
        # So it counts for the stretch too: else the passage of another document wins by repeating the name in its text.
        covered = 1 - (1 - covered) * len(rest) / len(wanted)
        quote = passage.model_copy(update={"quote": stretch, "covered": None})
        ranked.append(_Ranked((whole if passage.covered is None else passage.covered) + covered, order, quote))
    ranked.sort(key=lambda one: (-one.covered, one.order))
    best = ranked[0].covered if ranked else 0
    kept = {one.quote.quote: one.quote for one in reversed(ranked) if one.covered >= best * 0.7}
    return list(reversed(kept.values()))[:QUOTES_MAX]


def _names(question: str) -> frozenset[str]:
    """Return the words within a question that begin with a capital and name something.

    None where most of its words do, as nouns in German; abbreviations name kinds, not things.
    """
    words = _WORD.findall(question)[1:]
    telling = [word for word in words if word.lower() not in _COMMON]
    names = [word for word in telling if word[0].isupper() and not word.isupper()]
    return frozenset() if len(names) > len(telling) * NAMES_MAX else _stems(" ".join(names))


def _answers(passage: Citation, whole: float, *, missing: int) -> bool:
    """Return whether a passage holds enough of the question to be an answer; each name that it lacks asks for more."""
    if passage.covered is None:
        return whole - missing * NAME_COVERS >= COVERED_MIN_UNWEIGHED
    return passage.covered - missing * NAME_COVERS >= COVERED_MIN


def _stretch(text: str, wanted: frozenset[str]) -> tuple[str, float]:
    """Return the run of whole sentences, at most QUOTE_CHARS_MAX characters, with the most wanted words, verbatim.

    Headings and rows of tables are quoted only where the sentences of a passage hold far fewer of the words.
    """
    anything = _best_run(text, [(0, len(text))], wanted)
    sentences = _best_run(text, _prose(text), wanted)
    return sentences if sentences[1] >= anything[1] * PROSE_MIN else anything


def _best_run(text: str, stretches: list[tuple[int, int]], wanted: frozenset[str]) -> tuple[str, float]:
    best, best_covered = "", -1.0
    for first, last in stretches:
        gaps = [gap for gap in _SENTENCE.finditer(text, first, last) if gap.start() > first]
        ends = [*(gap.start() for gap in gaps), last]
        for at, start in enumerate([first, *(gap.end() for gap in gaps)]):
            fitting = [end for end in ends[at:] if end - start <= QUOTE_CHARS_MAX]
            run = text[start : fitting[-1] if fitting else start + QUOTE_CHARS_MAX].strip()
            covered = len(wanted & _stems(run)) / len(wanted)
            if covered > best_covered:
                best, best_covered = run, covered
    return best, best_covered


def _prose(text: str) -> list[tuple[int, int]]:
    """Split a passage into the stretches between headings, rows of tables, fences and titles that stand alone."""
    stretches: list[tuple[int, int]] = []
    begun: int | None = None
    for line in _LINE.finditer(text):
        if _is_fragment(text, *line.span()):
            if begun is not None:
                stretches.append((begun, line.start()))
            begun = None
        elif begun is None and line[0].strip():
            begun = line.start()
    return stretches if begun is None else [*stretches, (begun, len(text))]


def _is_fragment(text: str, start: int, end: int) -> bool:
    """Return whether a line is no part of a sentence."""
    line = text[start:end].strip()
    if _FRAGMENT.match(line):
        return True
    alone = not text[:start].rstrip(" \t").removesuffix("\n").rpartition("\n")[2].strip() and not (
        text[end:].removeprefix("\n").partition("\n")[0].strip()
    )
    return bool(line) and alone and len(line.split()) <= TITLE_WORDS_MAX and line[-1] not in '.!?:;,。！？…"”)'  # noqa: RUF001


def _stems(text: str) -> frozenset[str]:
    words = (word.lower().removesuffix("'s") for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in words if word not in _COMMON and len(word) > 1)


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "edly", "ies", "ers", "er", "ed", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
