"""Secrets of tenants' servers are encrypted, bound to their server, and opened by every known key."""

from __future__ import annotations

from base64 import b64encode

import pytest

from wayline.contracts.errors import WrongSetting
from wayline.store.sealing import CannotOpen, Sealed
from wayline.tool_registry.secrets.secret_keys import SecretKeys
from wayline.tool_registry.settings import Settings

SECRETS = {"env": {"TOKEN": "canary-token"}}


def key(byte: int) -> str:
    return b64encode(bytes([byte]) * 32).decode()


OLD, NEW = SecretKeys.parse(f"old:{key(1)}"), SecretKeys.parse(f"new:{key(2)}, old:{key(1)}")


def sealed(keys: SecretKeys = OLD) -> Sealed:
    return keys.seal(SECRETS, tenant="acme", owner="bank")


def test_sealed_secrets_are_not_readable_and_open_again():
    made = sealed()

    assert b"canary" not in made.data
    assert "canary" not in repr(made)
    assert OLD.open(made, tenant="acme", owner="bank") == SECRETS


def test_the_same_secrets_are_sealed_differently_each_time():
    assert sealed().data != sealed().data


def test_the_first_key_encrypts_and_every_key_decrypts():
    assert sealed(NEW).key_id == "new"
    assert NEW.open(sealed(OLD), tenant="acme", owner="bank") == SECRETS


def test_secrets_of_another_server_or_tenant_cannot_be_opened():
    for tenant, server in (("globex", "bank"), ("acme", "files")):
        with pytest.raises(CannotOpen):
            OLD.open(sealed(), tenant=tenant, owner=server)


def test_a_missing_key_is_named_with_its_variable():
    with pytest.raises(CannotOpen, match="'new', which WAYLINE_TOOL_REGISTRY_KEYS does not hold"):
        OLD.open(sealed(NEW), tenant="acme", owner="bank")


def test_another_key_of_the_same_id_cannot_open():
    with pytest.raises(CannotOpen, match="save them again"):
        SecretKeys.parse(f"old:{key(3)}").open(sealed(), tenant="acme", owner="bank")


def test_no_key_shows_itself_in_a_repr():
    assert key(1) not in repr(OLD) + repr(Settings(keys=f"old:{key(1)}"))


@pytest.mark.parametrize("wrong", ["short:YWJj", "nocolon", f":{key(1)}", "a:???", f"a:{key(1)},a:{key(2)}"])
def test_a_wrong_key_is_refused_without_being_repeated(monkeypatch, wrong):
    monkeypatch.setenv("WAYLINE_TOOL_REGISTRY_KEYS", wrong)

    with pytest.raises(WrongSetting, match="WAYLINE_TOOL_REGISTRY_KEYS") as refused:
        Settings()
    assert wrong not in str(refused.value)
