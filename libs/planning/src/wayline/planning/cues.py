# ruff: noqa: RUF001 - words and signs of other scripts
"""Words that say that one thing comes before another, in several languages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from wayline.planning.words import Token, words

NEGATIONS = frozenset(
    {"not", "cannot", "no", "never", "without", "nicht", "kein", "keine", "ne", "pas", "sin", "non", "не"}
)
_UNTIL = frozenset({("until",), ("only", "when"), ("only", "after")})
"""Cues that mean the same behind a negation."""
_BEFORE = frozenset({("before",), ("bevor",), ("vor",), ("avant",), ("antes", "de"), ("prima", "di"), ("перед",)})
"""Cues that mean the opposite behind one."""
NEGATED_WITHIN = 2
"""Words before a cue among which a negation counts."""


@dataclass(frozen=True, slots=True)
class Cue:
    """Words beside which another task is named."""

    words: tuple[str, ...]
    weight: float
    forward: bool = False
    """Whether the task named is the later one, as behind `before`."""
    named_first: bool = False
    """Whether the task is named before the cue, as before `之后`."""
    done: bool = False
    """Whether it counts only where something is said to be done behind it, as behind `when`."""


@dataclass(frozen=True, slots=True)
class FoundCue:
    """A cue and the places of its first word and of the one behind its last."""

    cue: Cue
    first: int
    last: int


_LATER = {
    0.95: (
        "depends on; depends upon; depend on; dependent on; dependent upon; dependency on; dependencies; blocked by; "
        "blocked on; is blocked until; waits for; waits on; waiting for; waiting on; wait for; prerequisite; "
        "prerequisites; preceded by; predecessor; predecessors; hängt ab von; hängt von; abhängig von; blockiert von; "
        "blockiert durch; wartet auf; voraussetzung; voraussetzungen; dépend de; dépend du; dépend des; bloqué par; "
        "bloquée par; attend; prérequis; depende de; depende del; bloqueado por; bloqueada por; espera a; "
        "requisito previo; dipende da; dipende dal; dipende dalla; bloccato da; зависит от; ждет; заблокировано; "
        "依赖; 依赖于; 取决于; 前置; に依存; يعتمد على"
    ),
    0.9: (
        "after; once; as soon as; following; until; not before; only when; only after; subject to; builds on; "
        "build on; relies on; nach; nachdem; sobald; erst wenn; après; une fois; dès que; después de; después del; "
        "tras; una vez; en cuanto; dopo; una volta; não antes; depois de; após; assim que; после; как только; بعد"
    ),
    0.8: (
        "needs; need; requires; require; requiring; benötigt; braucht; erfordert; nécessite; requiert; a besoin de; "
        "necesita; requiere; necessita; richiede; requer; precisa de; требует; нужен; нужна; нужно; нужны; 需要; "
        "必须先; يتطلب; يحتاج"
    ),
}
_LATER_DONE = {0.8: "when; if; wenn; falls; quand; lorsque; cuando; quando; когда"}
_FORWARD = {
    0.9: (
        "before; prior to; blocks; is blocking; blocking; unblocks; precedes; prerequisite for; prerequisite of; "
        "needed for; needed by; required for; required by; necessary for; in preparation for; feeds into; enables; "
        "bevor; vor; blockiert; voraussetzung für; nötig für; avant; avant de; bloque; nécessaire pour; requis pour; "
        "antes de; antes del; bloquea; necesario para; prima di; prima della; blocca; antes do; antes da; перед; "
        "блокирует; нужно для; قبل"
    )
}
_NAMED_FIRST = {
    0.9: (
        "完成后; 完成之后; 之后; 以后; の後; の後に; の完了後; 完了後; してから; "
        "이후; 이후에; 후에; 완료 후; 에 의존; 이 필요; 가 필요"
    )
}
_NAMED_FIRST_FORWARD = {0.9: "之前; 以前; の前; の前に; する前; 전에; 이전에"}

_DONE = frozenset(
    word.text
    for word in words(
        "done finished complete completed ready approved signed booked delivered available confirmed passed live "
        "merged released closed paid received fertig erledigt abgeschlossen genehmigt terminé terminée fini finie "
        "prêt prête terminado terminada listo lista completato pronto pronta concluído готов готова готово "
        "завершен завершена"
    )
)


@cache
def _by_first_word() -> dict[str, list[Cue]]:
    found: dict[str, list[Cue]] = {}
    tables = (
        (_LATER, Cue((), 0)),
        (_LATER_DONE, Cue((), 0, done=True)),
        (_FORWARD, Cue((), 0, forward=True)),
        (_NAMED_FIRST, Cue((), 0, named_first=True)),
        (_NAMED_FIRST_FORWARD, Cue((), 0, named_first=True, forward=True)),
    )
    for table, kind in tables:
        for weight, phrases in table.items():
            for phrase in phrases.split(";"):
                said = tuple(word.text for word in words(phrase))
                found.setdefault(said[0], []).append(replace(kind, words=said, weight=weight))
    for cues in found.values():
        cues.sort(key=lambda cue: -len(cue.words))
    return found


def find_cues(said: Sequence[Token], *, most: int) -> list[FoundCue]:
    """Return the cues among words, the longest at each place, without those that are negated; at most so many."""
    table, found, at = _by_first_word(), list[FoundCue](), 0
    while at < len(said) and len(found) < most:
        cue = next((cue for cue in table.get(said[at].text, ()) if _stands(cue, said, at)), None)
        if cue is None:
            at += 1
            continue
        last = at + len(cue.words)
        if not _is_negated(said, at, last) or cue.words in _UNTIL:
            found.append(FoundCue(cue, at, last))
        elif cue.words in _BEFORE:
            # `Do not start before …`: what is named comes first.
            found.append(FoundCue(replace(cue, forward=False), at, last))
        at = last
    return found


def is_done_word(word: str) -> bool:
    """Return whether a folded word says that something is done: one of a list, or an English participle."""
    return word in _DONE or (
        len(word) > 4 and word.endswith("ed") and word not in ("need", "proceed", "exceed", "speed")
    )


def _stands(cue: Cue, said: Sequence[Token], at: int) -> bool:
    return len(said) - at >= len(cue.words) and all(said[at + n].text == word for n, word in enumerate(cue.words))


def _is_negated(said: Sequence[Token], first: int, last: int) -> bool:
    before = (word.text for word in said[max(0, first - NEGATED_WITHIN) : first])
    behind = said[last].text if last < len(said) else ""
    return behind in ("no", "nothing", "keine") or any(
        word in NEGATIONS or word.endswith(("n't", "n’t")) for word in before
    )
