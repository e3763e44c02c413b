"""An API key is recognised, and nothing that is kept of it could make it."""

from __future__ import annotations

from wayline.gateway.keys import Caller, StoredKey, digest, key_id, mint, opens


def test_a_key_opens_with_its_own_secret_only():
    new, other = mint(), mint()
    stored = StoredKey(new.id, new.hash, Caller("acme", "laptop"))

    assert opens(stored, new.secret)
    assert not opens(stored, other.secret)
    assert not opens(stored, new.secret[:-1])


def test_a_key_names_its_id_and_only_a_hash_is_stored():
    new = mint()

    assert key_id(new.secret) == new.id
    assert new.hash == digest(new.secret)
    assert new.secret.removeprefix(f"wl_{new.id}_").encode() not in new.hash


def test_what_is_no_key_of_ours_has_no_id():
    new = mint()

    assert [key_id(text) for text in ("", "sk-1", new.secret + "x", f"wl_{new.id}", "wl_../_x")] == [None] * 5
