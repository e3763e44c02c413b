"""What a site's robots.txt lets a program fetch (RFC 9309)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

PATTERN_CHARS_MAX = 500
STARS_MAX = 10
"""Of one pattern: what it takes to match it grows with them."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a group."""

    allow: bool
    pattern: str

    def fits(self, path: str) -> bool:
        """Return whether a path begins as the pattern says: `*` is anything, `$` the end."""
        pattern, at_end = (self.pattern[:-1], True) if self.pattern.endswith("$") else (self.pattern, False)
        first, *rest = pattern.split("*")
        if not path.startswith(first):
            return False
        at = len(first)
        for n, part in enumerate(rest):
            last = n == len(rest) - 1
            found = path.rfind(part, at) if last and at_end else path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return not at_end or at == len(path)


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules for one program."""

    rules: tuple[Rule, ...] = ()

    def allows(self, path: str) -> bool:
        """Return whether a path, with its query, may be fetched: the longest pattern that fits decides."""
        path = _encoded(path) or "/"
        fitting = [(len(rule.pattern), rule.allow) for rule in self.rules if rule.pattern and rule.fits(path)]
        return max(fitting, default=(0, True))[1]


def robots_text(content: bytes, *, cut: bool) -> str:
    """Return the text of a robots.txt; of one that is cut, its whole lines."""
    whole = content[: content.rfind(b"\n") + 1] if cut else content
    return whole.decode("utf-8-sig", "replace")


def read_robots(text: str, product: str) -> Robots:
    """Return the rules of a robots.txt for a program: its own group's, else those for everybody."""
    own: list[Rule] = []
    everybody: list[Rule] = []
    named = False
    targets: list[list[Rule]] = []
    in_rules = True
    for key, value in _lines(text.splitlines()):
        if key == "user-agent":
            if in_rules:
                targets, in_rules = [], False
            agent = re.match(r"[a-z_-]*", value.casefold())
            if value == "*":
                targets.append(everybody)
            elif agent and agent[0] == product.casefold():
                named = True
                targets.append(own)
        elif key in ("allow", "disallow"):
            in_rules = True
            if len(value) <= PATTERN_CHARS_MAX and value.count("*") <= STARS_MAX:
                for target in targets:
                    target.append(Rule(key == "allow", _encoded(value)))
    return Robots(tuple(own if named else everybody))


def _lines(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().casefold(), value.strip()


def _encoded(path: str) -> str:
    """Return a path in one form, however it was escaped."""
    return quote(unquote(path), safe="/?&=*$:@!'(),;+-._~%")
