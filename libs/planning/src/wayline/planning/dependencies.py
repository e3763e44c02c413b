# ruff: noqa: RUF001 - words and signs of other scripts
"""What depends on what, read from the words of tasks and documents: each with its weight and the words that say so."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from wayline.planning.cues import FoundCue, find_cues, is_done_word
from wayline.planning.execution_waves import strongest
from wayline.planning.implied_order import dates, products
from wayline.planning.mentions import Mention, Names, is_only_references, names_of, phrases
from wayline.planning.tasks import (
    PASSAGE_MAX_CHARS,
    PASSAGES_MAX,
    QUOTE_MAX_CHARS,
    TEXT_MAX_CHARS,
    TEXTS_MAX_CHARS,
    Dependency,
    Passage,
    Task,
    distinct,
    require_few,
)
from wayline.planning.words import Token, words

WEIGHT_MIN = 0.3
"""Dependencies that are less sure are not reported."""
CUES_PER_TEXT_MAX = 64
NAMED_WORDS_MAX = 40
"""Words beside a cue in which tasks are looked for."""
SAID_MIN = 0.6
"""How sure what words say must be for what is only implied to be dropped: of the same task, or the other way round."""
IMPLIED = frozenset({"product", "refers_back", "date"})

_SENTENCE = re.compile(r"[.!?;](?=\s|$)|[。！？；\n]")
_PREVIOUS = frozenset({"previous", "preceding", "vorherigen", "vorigen", "précédente", "anterior", "precedente"})
_STEP = frozenset({"step", "task", "item", "schritt", "aufgabe", "étape", "etape", "tâche", "paso", "tarea", "passo"})


@dataclass(frozen=True, slots=True)
class Detected:
    """The dependencies that were found, strongest first."""

    dependencies: tuple[Dependency, ...]
    cut: bool = False
    """Whether there was more to read than one plan may take."""


def detect_dependencies(
    tasks: Collection[Task], passages: Sequence[Passage] = (), *, weight_min: float = WEIGHT_MIN
) -> Detected:
    """Return the dependencies that tasks state and that their words, and passages of documents, say or imply.

    Raises TooManyTasks.
    """
    require_few(tasks)
    known = list(distinct(tasks).values())
    names = names_of(known)
    found = [*_stated(known)]
    cut = len(passages) > PASSAGES_MAX
    read, room = list[Task](), TEXTS_MAX_CHARS
    for at, task in enumerate(known):
        text = f"{task.name}\n{task.text}" if task.text else task.name
        shown = text[: min(TEXT_MAX_CHARS, max(room, 0))]
        cut, room = cut or len(shown) < len(text), room - len(shown)
        read.append(replace(task, text=shown))
        before = known[at - 1].id if at else None
        found += [one for sentence in sentences(shown) for one in _of_task(task.id, sentence, names, before)]
    for passage in passages[:PASSAGES_MAX]:
        cut = cut or len(passage.text) > PASSAGE_MAX_CHARS
        for sentence in sentences(passage.text[:PASSAGE_MAX_CHARS]):
            found += [replace(one, source=passage.id) for one in _of_passage(sentence, names)]
    found += [*products(read), *dates(read)]
    sure = strongest(one for one in _consistent(found) if one.weight >= weight_min)
    return Detected(tuple(sure), cut or names.is_spent)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each line by itself."""
    start = 0
    for end in _SENTENCE.finditer(text):
        if sentence := text[start : end.end()].strip():
            yield sentence
        start = end.end()
    if sentence := text[start:].strip():
        yield sentence


def _stated(tasks: Sequence[Task]) -> Iterator[Dependency]:
    known = {task.id for task in tasks}
    for task in tasks:
        for needs in task.depends_on:
            if needs in known and needs != task.id:
                yield Dependency(task.id, needs, 1.0, "stated", f"depends_on: {needs}"[:QUOTE_MAX_CHARS])


def _of_task(task: str, sentence: str, names: Names, before: str | None) -> Iterator[Dependency]:
    """Yield what a sentence of a task says of other tasks."""
    said = words(sentence)
    cues = find_cues(said, most=CUES_PER_TEXT_MAX)
    for at, found in enumerate(cues):
        for mention in _named(sentence, said, cues, at, names):
            yield from _dependency(task, mention, found, sentence)
        if before is not None and not found.cue.forward and _is_previous(said[found.last : found.last + 3]):
            yield from _dependency(task, Mention(before, "reference", 0.9), found, sentence)


def _is_previous(said: Sequence[Token]) -> bool:
    told = [word.text for word in said]
    return any(one in _PREVIOUS for one in told) and any(one in _STEP for one in told)


def _of_passage(sentence: str, names: Names) -> Iterator[Dependency]:
    """Yield what a sentence of a document says: its subject stands before the cue, or behind its first comma."""
    said = words(sentence)
    cues = find_cues(said, most=CUES_PER_TEXT_MAX)
    for at, found in enumerate(cues):
        subjects = _mentions(sentence, _subject(sentence, said, cues, at), names)
        for mention in _named(sentence, said, cues, at, names) if subjects else ():
            for subject in subjects:
                sure = mention._replace(sure=mention.sure * subject.sure)
                yield from _dependency(subject.task, sure, found, sentence)


def _subject(sentence: str, said: Sequence[Token], cues: Sequence[FoundCue], at: int) -> Sequence[Token]:
    found = cues[at]
    if found.cue.named_first:
        return said[found.last : found.last + NAMED_WORDS_MAX]
    if found.first == 0:
        comma = _first_comma(sentence, said, found.last)
        return [] if comma is None else said[comma : comma + NAMED_WORDS_MAX]
    start = cues[at - 1].last if at and cues[at - 1].first > 0 else 0
    return said[max(start, found.first - NAMED_WORDS_MAX) : found.first]


def _named(sentence: str, said: Sequence[Token], cues: Sequence[FoundCue], at: int, names: Names) -> list[Mention]:
    """Return the tasks that are named beside a cue."""
    found = cues[at]
    if found.cue.named_first:
        start = cues[at - 1].last if at else 0
        return _mentions(sentence, said[max(start, found.first - NAMED_WORDS_MAX) : found.first], names)
    end = cues[at + 1].first if at + 1 < len(cues) else len(said)
    there = said[found.last : min(end, found.last + NAMED_WORDS_MAX)]
    if found.first == 0:
        # `Once the venue is booked, send the invitations`: what stands behind the comma is the task itself.
        there = _until_subject(sentence, there, names)
    if found.cue.done and not any(is_done_word(word.text) for word in there):
        return []
    return _mentions(sentence, there, names)


def _until_subject(sentence: str, there: Sequence[Token], names: Names) -> Sequence[Token]:
    """Return words up to the first comma; behind it only what is still a list of ids."""
    end = _first_comma(sentence, there, 0)
    while end is not None:
        behind = _first_comma(sentence, there, end + 1)
        part = there[end:behind]
        by_id = names.ids_in(sentence, part)
        if not by_id or not is_only_references(part, by_id):
            return there[:end]
        end = behind
    return there


def _first_comma(sentence: str, said: Sequence[Token], start: int) -> int | None:
    """Return the first word behind a comma; None: there is no comma."""
    for at in range(max(start, 1), len(said)):
        if any(sign in sentence[said[at - 1].end : said[at].start] for sign in ",，、"):
            return at
    return None


def _mentions(sentence: str, said: Sequence[Token], names: Names) -> list[Mention]:
    """Return the tasks that words name: by id, else by name, as one phrase or as several."""
    by_id = names.ids_in(sentence, said)
    best = {mention.task: mention for mention, _, _ in by_id}
    covered = {at for _, first, last in by_id for at in range(first, last)}
    free = [word for at, word in enumerate(said) if at not in covered]
    for phrase in (free, *phrases(sentence, free)):
        for mention in names.named_in(phrase):
            before = best.get(mention.task)
            if before is None or mention.sure > before.sure:
                best[mention.task] = mention
    return list(best.values())


def _dependency(subject: str, mention: Mention, found: FoundCue, sentence: str) -> Iterator[Dependency]:
    if mention.task == subject:
        return
    task, needs = (mention.task, subject) if found.cue.forward else (subject, mention.task)
    sure = 1.0 if mention.kind == "reference" else 0.6 + 0.35 * mention.sure
    weight = round(found.cue.weight * sure * (1.0 if mention.kind == "name" else mention.sure), 3)
    yield Dependency(task, needs, weight, mention.kind, sentence[:QUOTE_MAX_CHARS])


def _consistent(found: Sequence[Dependency]) -> Iterator[Dependency]:
    """Yield all but what was only implied where words say the opposite, or say themselves what the task needs."""
    said = [one for one in found if one.kind not in IMPLIED and one.weight >= SAID_MIN]
    edges, told = {(one.task, one.needs) for one in said}, {one.task for one in said}
    for one in found:
        if one.kind not in IMPLIED or (one.task not in told and (one.needs, one.task) not in edges):
            yield one
