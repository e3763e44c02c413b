"""How each provider keeps prompts. Knows the wire's blocks and markers, and nothing of Wayline's own bookkeeping.

A cache is asked once when a request is admitted (`look`) and told once when its answer begins (`begin`): between
the two, a second request with the same prefix finds nothing, as with the real ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from wayline.simulator.prompt.blocks import Block
from wayline.simulator.prompt.counting import BLOCK_TOKENS, TOKEN_BYTES
from wayline.simulator.refusals import Refusal

Clock = Callable[[], float]
"""Seconds; only differences matter."""

PREFIXES_MAX = 100_000
"""With more than these, ended ones are forgotten."""
TTL_S = {"5m": 300.0, "1h": 3_600.0, "30m": 1_800.0, "12h": 43_200.0}


@dataclass(frozen=True, slots=True)
class Entry:
    """A prefix to be kept, or kept on."""

    key: bytes
    ttl_s: float = 0.0
    """0: as it was written with."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a request reads and writes, in tokens, and what is kept once its answer begins."""

    input: int
    """All of the prompt."""
    read: int = 0
    write_short: int = 0
    write_long: int = 0
    """Anthropic's 1h writes."""
    keeps: tuple[Entry, ...] = ()


class PrefixCache:
    """Prefixes and how long they live; reading or writing one anew starts its time again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[bytes, tuple[float, float]] = {}
        """By prefix: when it ends, and how long it lives from each use."""

    def has(self, key: bytes) -> bool:
        return key in self._until and self._until[key][0] > self._clock()

    def begin(self, plan: Plan) -> None:
        """Note that the answer has begun: from now on others may read what this request wrote."""
        now = self._clock()
        for entry in plan.keeps:
            ttl_s = max(entry.ttl_s, self._until[entry.key][1] if self.has(entry.key) else 0.0)
            self._until[entry.key] = (now + ttl_s, ttl_s)
        if len(self._until) > PREFIXES_MAX:
            self._until = {key: kept for key, kept in self._until.items() if kept[0] > now}


def _chain(start: object, pieces: Sequence[bytes]) -> Iterator[bytes]:
    """Yield a digest for every prefix."""
    digest = hashlib.sha256(repr(start).encode()).digest()
    for piece in pieces:
        digest = hashlib.sha256(digest + piece).digest()
        yield digest


class AnthropicCache:
    """Kept is what is marked, up to the marked block; read is the longest kept prefix near a mark.

    - at most `MARKS_MAX` marks, a 1h mark never after a 5m one;
    - from each mark, `LOOKBACK_BLOCKS` positions are looked at, the marked block being the first;
    - a prefix below the model's minimum is silently not kept;
    - tools or model changed: everything is new. tool_choice, thinking or images: the messages only. The answer's schema
      stands before the system prompt;
    - reading a prefix refreshes it, and every marked prefix inside it.
    """

    MARKS_MAX = 4
    LOOKBACK_BLOCKS = 20

    def __init__(self, clock: Clock) -> None:
        self._kept = PrefixCache(clock)
        self.begin = self._kept.begin

    def look(self, blocks: Sequence[Block], *, owner: str, min_tokens: int, settings: bytes) -> Plan:
        """Find what is cached. `owner`: key and model; `settings`: what only the messages depend on."""
        marks = [at for at, block in enumerate(blocks) if block.keep]
        self.check([blocks[at].keep or "" for at in marks])
        sizes = _running_sum([block.tokens for block in blocks])
        total = sizes[-1] if sizes else 0
        keys = list(_chain(owner, _with_settings(blocks, settings)))
        hit = self._hit(marks, keys, sizes, min_tokens)
        writes = [at for at in marks if at > hit and sizes[at] >= min_tokens]
        if hit < 0 and not writes:
            return Plan(input=total)
        read = sizes[hit] if hit >= 0 else 0
        last_long = max((at for at in writes if blocks[at].keep == "1h"), default=hit)
        long = (sizes[last_long] if last_long >= 0 else 0) - read
        end = sizes[writes[-1]] if writes else read
        keeps = [Entry(keys[at], TTL_S[blocks[at].keep or "5m"]) for at in marks if sizes[at] >= min_tokens]
        if hit >= 0:
            keeps.append(Entry(keys[hit]))
        return Plan(input=total, read=read, write_long=long, write_short=end - read - long, keeps=tuple(keeps))

    def check(self, ttls: Sequence[str]) -> None:
        """Refuse what the API refuses about marks."""
        if len(ttls) > self.MARKS_MAX:
            raise Refusal(f"A maximum of 4 blocks with cache_control may be provided. Found {len(ttls)}.")
        if "1h" in ttls[ttls.index("5m") :] if "5m" in ttls else False:
            raise Refusal("A ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.")

    def _hit(self, marks: Sequence[int], keys: Sequence[bytes], sizes: Sequence[int], min_tokens: int) -> int:
        """Return the last kept position that any mark can see, or -1."""
        for mark in reversed(marks):
            for at in range(mark, max(mark - self.LOOKBACK_BLOCKS, -1), -1):
                if sizes[at] >= min_tokens and self._kept.has(keys[at]):
                    return at
        return -1


def _with_settings(blocks: Sequence[Block], settings: bytes) -> list[bytes]:
    pieces = [block.payload for block in blocks]
    first = next((at for at, block in enumerate(blocks) if block.section == "messages"), None)
    if first is not None:
        pieces[first] = settings + pieces[first]
    return pieces


class OpenAICache:
    """Kept is every prompt of at least 1,024 tokens, in steps of 128; read is the longest kept prefix.

    Our choices where the documentation is silent: the implicit breakpoint stands at the prompt's last whole step, and
    every whole step before it can be read; a prompt_cache_key names a machine, and machines share nothing; both
    lifetimes cost the same to write; reading refreshes. Explicit breakpoints are exact, not rounded: the latest
    `WRITES_MAX` are written (one fewer beside an implicit one), the latest `MATCHES_MAX` looked for; there is no
    lookback limit.
    """

    MIN_TOKENS = 1_024
    STEP_TOKENS = 128
    WRITES_MAX = 4
    MATCHES_MAX = 80

    def __init__(self, clock: Clock) -> None:
        self._kept = PrefixCache(clock)
        self.begin = self._kept.begin

    def look(self, blocks: Sequence[Block], *, owner: str, implicit: bool, ttl: str) -> Plan:
        """Find what is cached. `owner`: API key, model and prompt_cache_key."""
        sizes = _running_sum([block.tokens for block in blocks])
        total = sizes[-1] if sizes else 0
        keys = list(_chain(owner, [block.payload for block in blocks]))
        marks = [at for at, block in enumerate(blocks) if block.keep and sizes[at] >= self.MIN_TOKENS]
        exact = [(sizes[at], Entry(keys[at], TTL_S[blocks[at].keep or ttl])) for at in marks]
        steps: list[tuple[int, Entry]] = []
        if implicit:
            found = _steps(owner, blocks, self.STEP_TOKENS)
            steps = [(size, Entry(key, TTL_S[ttl])) for size, key in found if size >= self.MIN_TOKENS]
        seen = [(n, entry) for n, entry in (*exact[-self.MATCHES_MAX :], *steps) if self._kept.has(entry.key)]
        read, used = max(seen, key=lambda found: found[0], default=(0, None))
        written = [*exact[-(self.WRITES_MAX - implicit) :], *steps]
        end = max([read, *(size for size, _ in written)])
        keeps = [entry for _, entry in written] + ([Entry(used.key)] if used else [])
        return Plan(input=total, read=read, write_short=end - read, keeps=tuple(keeps))


def _steps(owner: str, blocks: Sequence[Block], step: int) -> Iterator[tuple[int, bytes]]:
    """Yield a digest after each `step` tokens of the prompt."""
    digest = hashlib.sha256(repr((owner, "steps")).encode())
    tokens = b"".join(_as_tokens(block) for block in blocks)
    size = step * TOKEN_BYTES
    for end in range(size, len(tokens) + 1, size):
        digest.update(tokens[end - size : end])
        yield end // TOKEN_BYTES, digest.digest()


def _as_tokens(block: Block) -> bytes:
    """Yield a block as the tokens it counts: its head's first, then its text's."""
    head = hashlib.sha256(block.head).digest()[: BLOCK_TOKENS * TOKEN_BYTES]
    text = block.text.ljust(-(-len(block.text) // TOKEN_BYTES) * TOKEN_BYTES, b"\0")
    return (head + text).ljust(block.tokens * TOKEN_BYTES, b"\0")


def _running_sum(values: Sequence[int]) -> list[int]:
    sums: list[int] = []
    for value in values:
        sums.append(value + (sums[-1] if sums else 0))
    return sums
