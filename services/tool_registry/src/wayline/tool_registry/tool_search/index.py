"""An index of tools by their words: BM25 over weighted fields, higher where a query covers a tool's name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

from wayline.contracts.tools import ToolDefinition
from wayline.tool_registry.tool_search.tool_words import stem, words

# All measured with tests/evals/tool_search on three public sets; the neighbouring values are less than 0.01 worse.
NAME_WEIGHT, DESCRIPTION_WEIGHT, PARAMETER_WEIGHT, ABOUT_PARAMETER_WEIGHT, SERVER_WEIGHT = 2.0, 1.0, 0.5, 0.3, 0.3
K1, B = 1.2, 0.75
STEM_SHARE, WORD_SHARE = 0.7, 0.3
"""What a word counts for in any of its forms, and what the very same form adds."""
PAIR_SHARE = 0.3
"""What two words that follow each other in the query and in a name or a description add."""
PIECE_SHARE = 0.1
"""What a word of a query counts for that begins or ends a longer word of a name: `sign` for `docusign`."""
PIECE_MIN_CHARS, REST_MIN_CHARS = 4, 3
"""Of such a word, and of what is left of the longer one."""
NAME_COVERAGE, TEXT_COVERAGE = 0.5, 0.5
"""How much more a tool counts whose name is in the query in full, and one whose description is, too."""
SERVER_WORDS_MAX = 200
PARAMETERS_DEPTH_MAX = 4
PARAMETERS_MAX = 200
TEXT_CHARS_MAX = 2_000

_PREFIX = re.compile(r"^[a-z0-9-]+__")


@dataclass(frozen=True)
class Entry:
    """A tool of the index, and the instructions of its server."""

    tool: ToolDefinition
    server: str = ""


class Match(NamedTuple):
    """A tool that has words of the query, and how well it fits."""

    tool: ToolDefinition
    score: float
    at: int = 0
    """Its place in the index."""


class ToolText(NamedTuple):
    """What an embedder is given of a tool."""

    key: str
    """The hash of the text."""
    text: str


class _Posting(NamedTuple):
    """A tool that has a term, and what it counts for there."""

    at: int
    weight: float
    name: bool
    """Whether its name has it."""
    text: bool
    """Whether its name or its description has it."""


class ToolIndex:
    """Finds tools by words. Made once for a set of tools; a search looks only at those that have a word of it."""

    def __init__(self, entries: Iterable[Entry], *, before: ToolIndex | None = None) -> None:
        """Take the tools, and the index of before: the words of a tool that is the same are not looked for again."""
        same = {} if before is None else before._terms_by_tool
        self._terms_by_tool: dict[int, tuple[Entry, _ToolTerms]] = {}
        known: list[tuple[ToolDefinition, _ToolTerms]] = []
        for entry in entries:
            kept = same.get(id(entry.tool))
            # The entry is kept beside: as long as it is there, no other tool has its identity.
            own = kept[1] if kept is not None and kept[0] == entry else _terms_of(entry)
            self._terms_by_tool[id(entry.tool)] = entry, own
            known.append((entry.tool, own))
        self._tools = [tool for tool, _ in known]
        terms = [one for _, one in known]
        self._postings = _weighted(terms)
        self._idf = {term: _idf(len(found), len(terms)) for term, found in self._postings.items()}
        self._by_piece = _by_piece(one.name for one in terms)
        self._name_mass = [self._mass(one.name) for one in terms]
        self._text_mass = [self._mass(one.text) for one in terms]

    def __len__(self) -> int:
        return len(self._tools)

    @cached_property
    def tools(self) -> Sequence[ToolDefinition]:
        """Return the tools in the order of the index."""
        return tuple(self._tools)

    @cached_property
    def texts(self) -> Sequence[ToolText]:
        """Return, in the order of the index, what an embedder is given of each tool."""
        return tuple(map(_text_of, self._tools))

    def search(self, query: str) -> list[Match]:
        """Return all tools that have a word of a query, the best first; of equal ones in the order of the index."""
        scores = self._scores(words(query))
        best = sorted(scores, key=lambda at: (-scores[at], at))
        return [Match(self._tools[at], scores[at], at) for at in best]

    def _scores(self, asked: Sequence[str]) -> dict[int, float]:
        # Each term once, however often it occurs: a task that names two tools would else find only the longer named.
        stems = list(dict.fromkeys(map(stem, asked)))
        shares = dict.fromkeys(map(_pair, pairwise(map(stem, asked))), PAIR_SHARE)
        shares |= dict.fromkeys(map(_exact, asked), WORD_SHARE) | dict.fromkeys(stems, STEM_SHARE)
        scores, names, texts = (defaultdict[int, float](float) for _ in range(3))
        longer = (term for piece in stems for term in self._by_piece.get(piece, ()))
        shares |= {term: PIECE_SHARE for term in longer if term not in shares}
        for term, share in shares.items():
            idf = self._idf.get(term, 0.0)
            for at, weight, in_name, in_text in self._postings.get(term, ()):
                scores[at] += share * idf * weight
                if in_text:
                    texts[at] += idf
                    names[at] += idf * in_name
        for at, covered in texts.items():
            name, text = names[at] / (self._name_mass[at] or 1), covered / self._text_mass[at]
            scores[at] *= 1 + NAME_COVERAGE * name + TEXT_COVERAGE * text
        return scores

    def _mass(self, stems: Iterable[str]) -> float:
        return sum(self._idf.get(one, 0.0) for one in stems)


class _ToolTerms(NamedTuple):
    """One tool's terms with their weights, and the stems of its name and its description."""

    terms: Mapping[str, float]
    name: tuple[str, ...]
    text: tuple[str, ...]


def _text_of(tool: ToolDefinition) -> ToolText:
    name = " ".join(words(_PREFIX.sub("", tool.name)))
    parameters = ", ".join(parameter for parameter, _ in _parameters(tool.input_schema))
    text = f"{name}: {tool.description}\n{parameters}"[:TEXT_CHARS_MAX]
    return ToolText(sha256(text.encode(errors="replace")).hexdigest(), text)


def _terms_of(entry: Entry) -> _ToolTerms:
    """Count a tool's terms, each by the weight of the field that it stands in."""
    name, description = words(_PREFIX.sub("", entry.tool.name)), words(entry.tool.description)
    fields = [(NAME_WEIGHT, name), (DESCRIPTION_WEIGHT, description)]
    fields += [(SERVER_WEIGHT, words(f"{entry.tool.server} {entry.server}")[:SERVER_WORDS_MAX])]
    for parameter, about in _parameters(entry.tool.input_schema):
        fields += [(PARAMETER_WEIGHT, words(parameter)), (ABOUT_PARAMETER_WEIGHT, words(about))]
    terms: dict[str, float] = defaultdict(float)
    for weight, field_words in fields:
        for word in field_words:
            terms[stem(word)] += weight
            terms[_exact(word)] += weight
    for field_words in (name, description):
        for pair in map(_pair, pairwise(map(stem, field_words))):
            terms[pair] = 1
    stems = tuple(dict.fromkeys(map(stem, name)))
    return _ToolTerms(terms, stems, tuple(dict.fromkeys((*stems, *map(stem, description)))))


def _parameters(schema: dict[str, Any], depth: int = 0) -> list[tuple[str, str]]:
    """Return the names of a schema's properties, also of objects within, and their descriptions."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or depth >= PARAMETERS_DEPTH_MAX:
        return []
    found: list[tuple[str, str]] = []
    for name, value in properties.items():
        about = value.get("description") if isinstance(value, dict) else None
        found.append((name, about if isinstance(about, str) else ""))
        if isinstance(value, dict):
            items = value.get("items")
            found += _parameters(items if isinstance(items, dict) else value, depth + 1)
    return found[:PARAMETERS_MAX]


def _weighted(tools: Sequence[_ToolTerms]) -> dict[str, list[_Posting]]:
    """Return, by term, the tools that have it, and what it counts for there (BM25's saturated, normalised count)."""
    lengths = [sum(tool.terms.values()) for tool in tools]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    postings: dict[str, list[_Posting]] = defaultdict(list)
    for at, (tool, length) in enumerate(zip(tools, lengths, strict=True)):
        room = K1 * (1 - B + B * length / (mean or 1.0))
        name, text = frozenset(tool.name), frozenset(tool.text)
        for term, count in tool.terms.items():
            postings[term].append(_Posting(at, count * (K1 + 1) / (count + room), term in name, term in text))
    return dict(postings)


def _by_piece(names: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """Return, by what they begin or end with, the stems of names: `docusign` by `docu` and `sign`."""
    found: dict[str, list[str]] = defaultdict(list)
    for term in dict.fromkeys(term for name in names for term in name):
        for length in range(PIECE_MIN_CHARS, len(term) - REST_MIN_CHARS + 1):
            for piece in dict.fromkeys((term[:length], term[-length:])):
                found[piece].append(term)
    return dict(found)


def _idf(having: int, of: int) -> float:
    return log(1 + (of - having + 0.5) / (having + 0.5))


def _exact(word: str) -> str:
    return f"={word}"


def _pair(two: tuple[str, str]) -> str:
    return f"{two[0]} {two[1]}"
