# ruff: noqa: RUF001 - words and signs of other scripts
"""Which tasks a piece of text names: by number or id, or by the words of their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from wayline.planning.cues import is_done_word
from wayline.planning.tasks import Task
from wayline.planning.words import COMMON_FOLDED, Token, rarity, telling, words

HOLDERS_MAX = 64
"""Tasks that may share a word; one that more share says nothing."""
LOOKUPS_MAX = 200_000
"""Comparisons of words with names in one plan; beyond it only numbers and ids are found."""
COVERED_MIN = 0.6
"""The share of a name's words, weighed by rarity, that must be said to name its task."""
FITTING_MIN = 0.5
"""The share of what is said that must be in the name."""
FITTING_ALONE = 0.8
"""The same where less of the name is said, but of no other task so much."""
NAMED_AT_ONCE_MAX = 2
"""Tasks that may fit the same words equally well; with more nobody knows which is meant."""

_NUMBERED = frozenset(
    word.text
    for word in words(
        "task step item number no nr point aufgabe schritt punkt tâche étape numéro tarea paso número attività passo "
        "tarefa etapa passo задача задачи шаг шага пункт tasks steps items aufgaben schritte tâches étapes tareas "
        "务 骤 第 ク 업"
    )
)
_JOINING = frozenset(word.text for word in words("and or und oder et ou y e o и или plus as well both 和 と 与 및 及"))


class Mention(NamedTuple):
    """A task that is named."""

    task: str
    kind: Literal["reference", "name"]
    sure: float
    """Between 0 and 1: how well what is said fits."""


@dataclass(slots=True)
class Names:
    """The ids and names of the tasks of a plan, to be found in texts."""

    by_id: Mapping[tuple[str, ...], str]
    """The words of an id → the task."""
    id_words_max: int
    stems: Mapping[str, frozenset[str]]
    """The task → what its name says."""
    holders: Mapping[str, Sequence[str]]
    """A stem → the tasks whose names hold it."""
    weights: Mapping[str, float]
    lookups: int = field(default=0)

    @property
    def is_spent(self) -> bool:
        """Return whether names are no longer looked for."""
        return self.lookups >= LOOKUPS_MAX

    def ids_in(self, text: str, said: Sequence[Token]) -> list[tuple[Mention, int, int]]:
        """Return the tasks named by id, and between which words."""
        found: list[tuple[Mention, int, int]] = []
        at, numbered = 0, False
        while at < len(said):
            match = self._id_at(said, at)
            if match is not None and self._is_reference(text, said, at, at + match[1], numbered=numbered):
                found.append((Mention(match[0], "reference", 1.0), at, at + match[1]))
                at, numbered = at + match[1], True
                continue
            numbered = said[at].text in _NUMBERED or (numbered and said[at].text in _JOINING)
            at += 1
        return found

    def _id_at(self, said: Sequence[Token], at: int) -> tuple[str, int] | None:
        for length in range(min(self.id_words_max, len(said) - at), 0, -1):
            task = self.by_id.get(tuple(word.text for word in said[at : at + length]))
            if task is not None:
                return task, length
        return None

    def _is_reference(self, text: str, said: Sequence[Token], at: int, end: int, *, numbered: bool) -> bool:
        """Return whether a number is a task's: `3` in `after 3 days` is not."""
        if not all(word.text.isdecimal() for word in said[at:end]):
            return True
        start = said[at].start
        if numbered or (start and text[start - 1] in "#№"):
            return True
        if start and text[start - 1] in "$€£¥%.:/-":
            return False
        if end == len(said):
            return True
        between, behind = text[said[end - 1].end : said[end].start], said[end].text
        joined = behind in _JOINING or is_done_word(behind) or behind in ("is", "are", "ist", "sind", "est", "es")
        return joined or any(sign in between for sign in ",;)]")

    def named_in(self, said: Iterable[Token]) -> list[Mention]:
        """Return the tasks whose names a phrase fits, the best alone."""
        phrase = [stem for stem in dict.fromkeys(telling(said)) if stem in self.holders]
        if not phrase or self.is_spent:
            return []
        whole = sum(self.weights[stem] for stem in phrase)
        shared: defaultdict[str, float] = defaultdict(float)
        for stem in phrase:
            holders = self.holders[stem]
            self.lookups += len(holders)
            if len(holders) <= HOLDERS_MAX:
                for task in holders:
                    shared[task] += self.weights[stem]
        fits = [self._fit(task, weight, whole) for task, weight in shared.items()]
        best = max((fit[0] for fit in fits), default=0.0)
        top = [fit for fit in fits if fit[0] >= best - 1e-9]
        if best <= 0 or len(top) > NAMED_AT_ONCE_MAX:
            return []
        alone = len(top) == 1
        return [
            Mention(task, "name", score if alone else score / 2)
            for score, covered, fitting, task in top
            if fitting >= FITTING_MIN and (covered >= COVERED_MIN or (alone and fitting >= FITTING_ALONE))
        ]

    def _fit(self, task: str, weight: float, whole: float) -> tuple[float, float, float, str]:
        """Return how well a phrase names a task: in all, what share of the name is said, and of what is said."""
        covered = weight / sum(self.weights[stem] for stem in self.stems[task])
        fitting = weight / whole
        return round(2 * covered * fitting / (covered + fitting), 9), covered, fitting, task


def names_of(tasks: Sequence[Task]) -> Names:
    """Return the names of tasks, to be found in texts."""
    by_id: dict[tuple[str, ...], str] = {}
    stems: dict[str, frozenset[str]] = {}
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for task in tasks:
        said = tuple(word.text for word in words(task.id))
        if said:
            by_id.setdefault(said, task.id)
        stems[task.id] = frozenset(telling(words(task.name)))
        for stem in stems[task.id]:
            holders[stem].append(task.id)
    return Names(by_id, max(map(len, by_id), default=0), stems, holders, rarity(stems.values()))


def phrases(text: str, said: Sequence[Token]) -> list[list[Token]]:
    """Split what stands beside a cue where it names several things: at commas and words that join."""
    found: list[list[Token]] = [[]]
    for at, word in enumerate(said):
        apart = at > 0 and any(sign in text[said[at - 1].end : word.start] for sign in ",;、，/()[]|")
        if apart or word.text in _JOINING:
            found.append([])
        if word.text not in _JOINING:
            found[-1].append(word)
    return [phrase for phrase in found if phrase]


def is_only_references(said: Sequence[Token], taken: Iterable[tuple[Mention, int, int]]) -> bool:
    """Return whether words are nothing but ids and what joins them."""
    covered = {at for _, first, last in taken for at in range(first, last)}
    free = (word.text for at, word in enumerate(said) if at not in covered)
    return all(one in _JOINING or one in COMMON_FOLDED or one in _NUMBERED or is_done_word(one) for one in free)
