"""What a server says is shown without what it was sent."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest

from wayline.contracts.server_config import ServerConfig
from wayline.tool_registry.secrets.server_secrets import TOKENS_MAX, ServerSecrets
from wayline.tool_registry.servers.redacted_results import redacted_result


def secrets_of(*values: str) -> ServerSecrets:
    return ServerSecrets(ServerConfig(command="bank", env={f"TOKEN_{n}": value for n, value in enumerate(values)}))


REMOTE = ServerSecrets(
    ServerConfig(
        url="https://bank.example/mcp?key=a%2Fcanary&v=1",
        headers={"Authorization": "Bearer canary", "X-Key": "canary-x"},
    )
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Bearer canary", "***"),
        ("the token canary", "the token ***"),
        ("a Bearer token", "a Bearer token"),
        ("a/canary a%2Fcanary canary-x", "*** *** ***"),
    ],
)
def test_a_result_shows_no_header_and_no_query(text: str, shown: str):
    assert REMOTE.without_secrets_in_result(text) == shown


def test_a_short_value_stays_a_word_of_results():
    secrets = secrets_of("1", "true", "info", "canary")

    assert secrets.without_secrets_in_result("1 true info canary") == "1 true info ***"


SETTINGS = {"DATA_DIR": "/srv/shared/data", "MODE": "production", "API": "https://bank.example/v1"}


def test_directories_words_and_addresses_stay_in_results_and_names():
    secrets = ServerSecrets(ServerConfig(command="bank", env={**SETTINGS, "SALT": "x9-canary-77"}))
    said = " ".join(SETTINGS.values())

    assert secrets.without_secrets_in_result(f"{said} x9-canary-77") == f"{said} ***"
    assert secrets.without_secrets("/srv/shared/data/a.txt", "uri") == "/srv/shared/data/a.txt"
    assert secrets.hide("/srv/shared/data") == "***"


@pytest.mark.parametrize(
    "env",
    [
        {"MODE": "production", "API_KEY": "production"},
        {"DB_PASSWORD": "production"},
        {"URL": "https://ann:production@bank.example/v1"},
    ],
)
def test_a_word_or_address_that_is_a_secret_is_hidden(env: dict[str, str]):
    [*_, secret] = env.values()

    assert ServerSecrets(ServerConfig(command="bank", env=env)).without_secrets_in_result(secret) == "***"


def test_a_longer_secret_is_hidden_before_its_part():
    assert secrets_of("canary", "canary-and-more").without_secrets_in_result("canary-and-more") == "***"


@pytest.mark.parametrize("secret", ['can"ary\\1', "canäry☃", "line\none-two", "C:\\new\\canary", "canary\\"])
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_a_secret_is_hidden_as_json_writes_it(secret: str, ensure_ascii: bool):
    text = json.dumps({"token": secret, "said": f"it is {secret}."}, ensure_ascii=ensure_ascii)

    assert json.loads(secrets_of(secret).without_secrets_in_result(text)) == {"token": "***", "said": "it is ***."}


@pytest.mark.parametrize(
    ("secret", "value", "shown"),
    [
        ("123456", {"pin": 123456, "of": "acme"}, {"pin": "***", "of": "acme"}),
        ("ncanary", {"a": "\ncanary"}, "***"),
        ('{"key": "canary"}', {"kept": {"key": "canary"}}, "***"),
        ('canary"}, {"a', [{"a": "canary"}, {"a": 1}], "***"),
    ],
)
def test_text_that_is_json_stays_json(secret: str, value: Any, shown: Any):
    assert json.loads(secrets_of(secret).without_secrets_in_result(json.dumps(value))) == shown


@pytest.mark.parametrize("secret", ['can"ary\\1', "canäry☃", "line\none-two", "tab\x07\x7fcanary", "123456"])
@pytest.mark.parametrize("beside", [1, 2**70, "\ud800"])
def test_structured_content_shows_no_secret(secret: str, beside: Any):
    content = {"of": beside, "list": [{"token": f"it is {secret}"}], f"key {secret}": True}

    shown = secrets_of(secret).without_secrets_in_result(content)

    assert shown == {"of": beside, "list": [{"token": "it is ***"}], "key ***": True}


def test_every_part_of_a_result_that_is_read_is_redacted():
    secrets = secrets_of("canary", "123456")
    image = types.ImageContent(type="image", data="canary==", mime_type="image/png")
    link = types.ResourceLink(type="resource_link", name="n", uri="bank://canary", mime_type="text/canary")
    inner = types.TextResourceContents(uri="bank://canary", text="canary")
    result = types.CallToolResult(
        content=[
            types.TextContent(type="text", text="it is canary"),
            image,
            link,
            types.EmbeddedResource(type="resource", resource=inner),
        ],
        structured_content={"canary": ["canary", {"pin": 123456}], "n": 7},
        _meta={"wayline/citations": [{"text": "canary"}], "wayline/cost_usd": "0.02"},
    )

    shown = redacted_result(result, secrets)

    assert shown.model_dump(by_alias=True, exclude_none=True) == {
        "content": [
            {"type": "text", "text": "it is ***"},
            {"type": "image", "data": "canary==", "mimeType": "image/png"},
            {"type": "resource_link", "name": "n", "uri": "bank://***", "mimeType": "text/***"},
            {"type": "resource", "resource": {"uri": "bank://***", "text": "***"}},
        ],
        "structuredContent": {"***": ["***", {"pin": "***"}], "n": 7},
        "_meta": {"wayline/citations": [{"text": "***"}], "wayline/cost_usd": "0.02"},
        "isError": False,
        "resultType": "complete",
    }


def test_a_question_to_a_person_shows_no_secret():
    schema = {"type": "object", "properties": {"canary": {"type": "string", "description": "not canary"}}}
    params = types.ElicitRequestFormParams(message="is it canary?", requested_schema=schema)
    asked = types.InputRequiredResult(input_requests={"q": types.ElicitRequest(params=params)}, request_state="canary")

    shown = redacted_result(asked, secrets_of("canary"))

    question = shown.input_requests["q"].params
    assert question.message == "is it ***?"
    assert question.requested_schema["properties"] == {"canary": {"type": "string", "description": "not ***"}}
    assert shown.request_state == "***"


def test_a_definition_keeps_names_that_are_short_values():
    raw = {"name": "search", "description": "search for canary-in-long", "inputSchema": {"enum": ["search"]}}

    assert secrets_of("search", "canary-in-long").without_secrets(raw) == {
        "name": "search",
        "description": "*** for ***",
        "inputSchema": {"enum": ["search"]},
    }


def test_many_tokens_push_no_configured_secret_out():
    secrets = secrets_of("canary")
    for number in range(TOKENS_MAX + 1):
        secrets.add_token(f"token-{number:09}")

    shown = secrets.hide(f"canary token-{TOKENS_MAX:09} token-{0:09}")

    assert shown == f"*** *** token-{0:09}"


def test_a_result_without_secrets_is_not_copied():
    content = {"a": ["b"]}

    assert secrets_of().without_secrets_in_result(content) is content
    assert secrets_of("canary").without_secrets_in_result(content) is content


def test_what_clients_are_shown_beside_a_text_has_no_secret():
    text = types.TextContent(type="text", text="a", _meta={"acme/seen": "canary"})
    link = types.ResourceLink(uri="db://canary", name="canary", title="canary", description="canary")
    inner = types.TextResourceContents(uri="db://1", text="a", _meta={"acme/seen": ["canary"]})
    embedded = types.EmbeddedResource(type="resource", resource=inner)

    shown = redacted_result(types.CallToolResult(content=[text, link, embedded]), secrets_of("canary"))

    assert isinstance(shown, types.CallToolResult)
    assert "canary" not in shown.model_dump_json()
