# ruff: noqa: RUF001 - words and signs of other scripts
"""An order that nobody states: what one task makes another uses, what one speaks of came before, dates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from wayline.planning.tasks import QUOTE_MAX_CHARS, Dependency, Task
from wayline.planning.words import Token, stem, telling, words

PRODUCT_WEIGHT = 0.35
PRODUCT_RARE_WEIGHT = 0.45
"""Where no third task speaks of the thing."""
REFERS_BACK_WEIGHT = 0.3
DATE_WEIGHT = 0.3
SHARED_BY_MAX = 6
"""Tasks that may speak of the thing that one of them makes; what more speak of is the plan's subject."""
DATED_PAIRS_MAX = 20_000

_MAKES = frozenset(
    stem(word)
    for word in """
    acquire add arrange assemble assign book build buy calculate capture choose collect compile compose compute
    configure create define deliver design determine develop discover download draft draw establish estimate export
    extract fetch filter find gather generate get hire identify implement install join learn list locate look make
    measure obtain open order organize outline pick plan prepare print produce provide publish purchase receive record
    register request rent research reserve retrieve scan schedule search select set setup sign sketch take translate
    upload write erstellen schreiben bauen buchen entwerfen planen besorgen kaufen sammeln installieren écrire créer
    réserver préparer rédiger acheter escribir crear reservar preparar comprar написать создать подготовить купить
    """.split()
)
_BACK = frozenset(
    """
    these those resulting results result obtained found retrieved filtered fetched collected gathered chosen selected
    aforementioned latter daraus diese diesen ceux ces estos estas dichos estes essas эти этих
    """.split()
)
_DUE = frozenset("due by until deadline bis spätestens avant pour antes hasta срок до".split())
_STARTS = frozenset("start starts starting begin begins from ab beginnt dès commence desde empieza с начало".split())
_MONTHS = tuple("january february march april may june july august september october november december".split())
_DATE = re.compile(
    rf"(?<!\d)(\d{{4}})-(\d\d)-(\d\d)(?!\d)|(?<!\d)(\d{{1,2}})\.? ({'|'.join(_MONTHS)}) (\d{{4}})", re.IGNORECASE
)


def products(tasks: Sequence[Task]) -> Iterator[Dependency]:
    """Yield that a task needs the last one before it that makes what it uses, or of whose results it speaks."""
    named = [words(task.name) for task in tasks]
    stems = [telling(said) for said in named]
    spoken = Counter(one for said in stems for one in set(said))
    made: dict[str, int] = {}
    for at, task in enumerate(tasks):
        needed: dict[int, float] = {}
        for one in dict.fromkeys(stems[at]):
            if one in made and spoken[one] <= SHARED_BY_MAX and one not in _MAKES:
                weight = PRODUCT_RARE_WEIGHT if spoken[one] == 2 else PRODUCT_WEIGHT
                needed[made[one]] = max(needed.get(made[one], 0.0), weight)
        for before, weight in needed.items():
            yield Dependency(task.id, tasks[before].id, weight, "product", task.name[:QUOTE_MAX_CHARS])
        if at and at - 1 not in needed and _speaks_of_before(named[at]):
            quote = task.name[:QUOTE_MAX_CHARS]
            yield Dependency(task.id, tasks[at - 1].id, REFERS_BACK_WEIGHT, "refers_back", quote)
        if any(one in _MAKES for one in stems[at][:2]):
            made.update(dict.fromkeys(stems[at], at))


def _speaks_of_before(said: Sequence[Token]) -> bool:
    return any(word.text in _BACK for word in said)


def dates(tasks: Sequence[Task]) -> Iterator[Dependency]:
    """Yield that a task begins when another one of the same subject must have ended."""
    due: dict[int, date] = {}
    starts: dict[int, date] = {}
    holders: dict[str, list[int]] = {}
    for at, task in enumerate(tasks):
        for found in _DATE.finditer(task.text):
            told = _told(found)
            before = {word.text for word in words(task.text[max(0, found.start() - 20) : found.start()])}
            if told is not None and before & _DUE:
                due.setdefault(at, told)
            elif told is not None and before & _STARTS:
                starts.setdefault(at, told)
        if at in due or at in starts:
            for one in set(telling(words(task.name))):
                holders.setdefault(one, []).append(at)
    pairs = (
        (later, earlier)
        for sharing in holders.values()
        if len(sharing) <= SHARED_BY_MAX
        for later in sharing
        if later in starts
        for earlier in sharing
        if earlier != later and earlier in due and due[earlier] <= starts[later]
    )
    for _, (later, earlier) in zip(range(DATED_PAIRS_MAX), pairs, strict=False):
        quote = f"{tasks[earlier].name}: until {due[earlier]}; {tasks[later].name}: from {starts[later]}"
        yield Dependency(tasks[later].id, tasks[earlier].id, DATE_WEIGHT, "date", quote[:QUOTE_MAX_CHARS])


def _told(found: re.Match[str]) -> date | None:
    year, month, day = found[1], found[2], found[3]
    if found[5]:
        year, month, day = found[6], str(_MONTHS.index(found[5].lower()) + 1), found[4]
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
