"""A server's secrets leave the process in the one message that hands them on, and nowhere else."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from wayline.contracts.mcp_servers import PutServer, ServerView, State
from wayline.contracts.server_config import MASK, ServerConfig

CONFIG = ServerConfig(url="https://bank.example/mcp", headers={"Authorization": "Bearer canary-1"})


def test_only_the_message_that_saves_a_server_holds_its_secrets():
    message = PutServer(tenant="acme", name="bank", config=CONFIG)

    heard = PutServer.from_wire(message.to_wire(), message.subject)

    assert b"canary-1" in message.to_wire()
    assert heard.config.headers["Authorization"].get_secret_value() == "Bearer canary-1"
    for text in (repr(message), str(message), message.model_dump_json(), str(message.model_dump())):
        assert "canary" not in text


def test_a_view_shows_names_and_masks():
    view = ServerView(name="bank", state=State.CONNECTED, config=CONFIG)

    assert view.model_dump(mode="json")["config"]["headers"] == {"Authorization": MASK}


def test_a_server_that_would_travel_by_the_object_store_is_refused():
    with pytest.raises(ValidationError, match="more than 65536 bytes") as refused:
        ServerConfig(command="npx", env={f"TOKEN_{n}": "canary" * 1_000 for n in range(12)})
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("wrong", [{"env": {"A B": "canary"}}, {"env": {"A": "can\0ary"}}, {"args": ["a\0b"]}])
def test_what_no_program_can_be_given_is_refused(wrong):
    with pytest.raises(ValidationError) as refused:
        ServerConfig(command="npx", **wrong)
    assert "canary" not in str(refused.value)
