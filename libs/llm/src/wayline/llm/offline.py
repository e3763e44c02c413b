"""The offline model: no network, no key. It searches, then answers by quoting; it says so, and it does not reason."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import NamedTuple

from wayline.contracts.chat import AssistantMessage, Citation, ImagePart, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.money import Usage
from wayline.llm.model import Finished, ModelError, ModelRequest, Piece, TextDelta
from wayline.llm.offline_planner import plan, plans
from wayline.llm.question_words import Wanted, language_of, may_answer, wanted_of
from wayline.llm.stems import UNSPACED, WORD, is_small, stems_of
from wayline.llm.tokens import estimate, estimate_request

PROVIDER = "offline"
SEARCH = "search_knowledge"
LABEL = "(Answered by the extractive offline model: it quotes passages, it does not reason.)"
PASSAGES_ASKED = 5
QUOTES_MAX = 3
QUOTE_CHARS_MAX = 420
UNSPACED_CHARS = 3
"""A character of Chinese, Japanese or Korean says about as much as so many letters."""
COVERED_MIN = 0.52
"""The share of a question's words, weighed by how rare they are, that a passage must hold to count as an answer."""
COVERED_MIN_OF_WHETHER = 0.67
"""The same where a question asks whether something is so: what is not named is not said to be so, nor not."""
COVERED_MIN_OF_KIND = 0.45
"""The same where a question asks for a number or a time, the stretch of a passage that would be quoted has one, and the
passage lacks no name."""
ALL_WORDS_COVER = 0.55
"""What a quote covers at least that holds all of a question's words, and one with half of them half of it: the search
may not know a form of a word, or count a word that only asks."""
ASKED_MIN = 0.5
"""Of a question's words that neither name something nor stand in the document's name or title, the share that a quote
must hold: what is told of a thing is not all that can be asked about it."""
ASKED_WORDS_ENOUGH = 2
"""So many of them are enough, of however many: a quote is a few sentences, and a long question has many words."""
WELL_COVERED_MIN = 0.6
"""One of them is enough in a passage that holds so much of the question."""
PROSE_MIN = 0.6
"""Of the words that the best stretch of a passage holds, the share that its sentences must hold to be quoted."""
TITLE_WORDS_MAX = 8
COVERED_MIN_UNWEIGHED = 0.5
"""The same where the search does not say: every word weighs alike."""

NAMES_MAX = 0.67
"""The share of a question's words that may be names; above it capitals say nothing."""
NAME_COVERS = 0.2
"""How much more a passage must hold for each name that it lacks, or it would answer about the wrong thing. Measured."""
COMMON_NAME_MIN = 2
"""Passages that hold a name which the others need not hold: the name of what all documents are about."""

# The second part: no space follows the end of a sentence in Chinese and Japanese.
_SENTENCE = re.compile(r"(?<=[.!?:؟])\s+(?=\S)|(?<=[。！？])\s*(?=\S)|\n{2,}|\n(?=[-*#|>])")  # noqa: RUF001
_TITLE = re.compile(r"^#\s.*$", re.MULTILINE)
_LINE = re.compile(r"[^\n]+")
# A heading or what underlines one, a row of a table, a fence.
_FRAGMENT = re.compile(r"#{1,6}\s|\||.*\s\|\s.*\||[-=*_~`|:+ ]{3,}$|```|~~~")


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


@dataclass(frozen=True, slots=True)
class _Question:
    """A question, read: its words, those of them that name something, and whether it wants a number or a time."""

    text: str
    language: str
    words: frozenset[str]
    names: frozenset[str]
    wanted: Wanted

    def stems(self, text: str) -> frozenset[str]:
        return stems_of(text, language=self.language)


def _read(question: str) -> _Question:
    language = language_of(question)
    words = stems_of(question, language=language)
    return _Question(question, language, words, _names(question, language), wanted_of(question))


def _quotes(question: str, passages: list[Citation]) -> list[Citation]:
    """Return the best stretch of each passage, best covered first; none where no passage covers the question."""
    asked = _read(question)
    if not asked.words:
        return []
    held = [asked.stems(f"{passage.document} {passage.quote}") for passage in passages]
    names = frozenset(name for name in asked.names if sum(name in stems for stems in held) < COMMON_NAME_MIN)
    titles = _titles(asked, passages)
    ranked: list[_Ranked] = []
    for order, (passage, stems) in enumerate(zip(passages, held, strict=True)):
        # What the document's name says is said of each of its sentences.
        named = asked.words & asked.stems(passage.document)
        rest = asked.words - named or asked.words
        stretch, covered = _stretch(passage.quote, rest, asked)
        whole = len(asked.words & stems) / len(asked.words)
        quoted = asked.words & (named | asked.stems(stretch))
        subject = named | asked.names | titles[passage.document]
        if not _tells(asked.words - subject, quoted, passage.covered or 0):
            continue
        missing = len(names - stems)
        share = len(quoted) / len(asked.words)
        if not _answers(asked, passage, stretch, whole=whole, quoted=share, missing=missing):
            continue
        # So it counts for the stretch too: else the passage of another document wins by repeating the name in its text.
        covered = 1 - (1 - covered) * len(rest) / len(asked.words)
        quote = passage.model_copy(update={"quote": stretch, "covered": None})
        ranked.append(_Ranked((whole if passage.covered is None else passage.covered) + covered, order, quote))
    ranked.sort(key=lambda one: (-one.covered, one.order))
    best = ranked[0].covered if ranked else 0
    kept = {one.quote.quote: one.quote for one in reversed(ranked) if one.covered >= best * 0.7}
    return list(reversed(kept.values()))[:QUOTES_MAX]


def _names(question: str, language: str) -> frozenset[str]:
    """Return the words within a question that begin with a capital and name something.

    None where most of its words do, as nouns in German; abbreviations name kinds, not things.
    """
    words = WORD.findall(question)[1:]
    telling = [word for word in words if not is_small(word, language=language)]
    names = [word for word in telling if word[0].isupper() and not word.isupper()]
    return frozenset() if len(names) > len(telling) * NAMES_MAX else stems_of(" ".join(names), language=language)


def _titles(asked: _Question, passages: list[Citation]) -> dict[str, frozenset[str]]:
    """Return the words of each document's title, which its first passage has and its others lack."""
    titles: dict[str, frozenset[str]] = {}
    for passage in passages:
        title = asked.stems(" ".join(_TITLE.findall(passage.quote)))
        titles[passage.document] = titles.get(passage.document, frozenset()) | title
    return titles


def _tells(attribute: frozenset[str], quoted: frozenset[str], covered: float) -> bool:
    """Return whether a quote is about what is asked of its subject; a question may name only the subject."""
    enough = 1 if covered >= WELL_COVERED_MIN else ASKED_WORDS_ENOUGH
    return len(attribute & quoted) >= min(len(attribute) * ASKED_MIN, enough)


def _answers(asked: _Question, passage: Citation, stretch: str, *, whole: float, quoted: float, missing: int) -> bool:
    """Return whether a passage holds enough of the question to be an answer; each name that it lacks asks for more.

    Where a number or a time is asked for, a stretch without one is no answer, and with one it may hold less.
    """
    if not may_answer(stretch, asked.wanted, stem=asked.stems):
        return False
    if passage.covered is None:
        return whole - missing * NAME_COVERS >= COVERED_MIN_UNWEIGHED
    least = COVERED_MIN_OF_WHETHER if asked.wanted.whether else COVERED_MIN
    if asked.wanted.kind is not None and not missing:
        least = COVERED_MIN_OF_KIND
    return max(passage.covered, quoted * ALL_WORDS_COVER) - missing * NAME_COVERS >= least


def _stretch(text: str, wanted: frozenset[str], asked: _Question) -> tuple[str, float]:
    """Return the run of whole sentences, at most QUOTE_CHARS_MAX characters, with the most wanted words, verbatim.

    Headings and rows of tables are quoted only where the sentences of a passage hold far fewer of the words.
    """
    anything = _best_run(text, [(0, len(text))], wanted, asked)
    sentences = _best_run(text, _prose(text), wanted, asked)
    return sentences if sentences[1] >= anything[1] * PROSE_MIN else anything


def _best_run(
    text: str, stretches: list[tuple[int, int]], wanted: frozenset[str], asked: _Question
) -> tuple[str, float]:
    """Return the fewest whole sentences that hold most of the wanted words, with those around them that fit."""
    best, best_key = "", (-1.0, False, 0)
    longest = QUOTE_CHARS_MAX // UNSPACED_CHARS if UNSPACED.search(text) else QUOTE_CHARS_MAX
    for first, last in stretches:
        gaps = [gap for gap in _SENTENCE.finditer(text, first, last) if gap.start() > first and _ends(text, gap)]
        starts, ends = [first, *(gap.end() for gap in gaps)], [*(gap.start() for gap in gaps), last]
        held = [wanted & asked.stems(text[start:end]) for start, end in zip(starts, ends, strict=True)]
        for at, start in enumerate(starts):
            words: frozenset[str] = frozenset()
            for until in range(at, len(ends)):
                if until > at and ends[until] - start > longest:
                    break
                words |= held[until]
                covered = len(words) / len(wanted)
                if covered < best_key[0]:
                    continue
                run = _around(text, (at, until), starts, ends, longest)
                key = (covered, may_answer(run, asked.wanted, stem=asked.stems), start - ends[until])
                if key > best_key:
                    best, best_key = run, key
    return best, best_key[0]


def _around(text: str, run: tuple[int, int], starts: list[int], ends: list[int], longest: int) -> str:
    """Return a run of sentences, with the next one, the one before, and so on while they fit."""
    first, last = run
    while True:
        if last + 1 < len(ends) and ends[last + 1] - starts[first] <= longest:
            last += 1
        elif first > 0 and ends[last] - starts[first - 1] <= longest:
            first -= 1
        else:
            break
        if first > 0 and ends[last] - starts[first - 1] <= longest:
            first -= 1
    return text[starts[first] : ends[last]][:longest].strip()


def _ends(text: str, gap: re.Match[str]) -> bool:
    """Return whether a sentence ends here: none begins with a small letter."""
    return "\n" in gap[0] or not text[gap.end()].islower()


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
