"""The cookie of a browser that is signed in."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from wayline.console.access.sealed_cookie import KEPT_S, RENEWED_AFTER_S, CookieSeal

KEY, OTHER = bytes(range(32)), bytes(32)


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_cookie_holds_its_session_and_hides_the_key(clock: Clock):
    seal = CookieSeal(KEY, clock)
    session = seal.begin("wl_secret")

    value = seal.seal(session)

    assert seal.open(value) == session
    assert b"wl_secret" not in urlsafe_b64decode(value)


def test_a_changed_cookie_or_another_seals_is_refused(clock: Clock):
    seal = CookieSeal(KEY, clock)
    value = seal.seal(seal.begin("wl_secret"))
    raw = bytearray(urlsafe_b64decode(value))
    raw[-1] ^= 1

    opened = [
        seal.open(urlsafe_b64encode(bytes(raw)).decode()),
        CookieSeal(OTHER, clock).open(value),
        *map(seal.open, (None, "", "no base64 \N{SNOWMAN}", "AAAA", "A" * 5_000)),
    ]

    assert opened == [None] * 7


def test_a_session_ends_unless_it_is_renewed(clock: Clock):
    seal = CookieSeal(KEY, clock)
    session = seal.begin("wl_secret")
    value = seal.seal(session)

    assert seal.renewed(session) is None
    clock.now_s += RENEWED_AFTER_S
    renewed = seal.renewed(session)
    assert renewed is not None and (renewed.key, renewed.token) == ("wl_secret", session.token)
    clock.now_s += KEPT_S - RENEWED_AFTER_S
    assert seal.open(value) is None
    assert seal.open(seal.seal(renewed)) == renewed
