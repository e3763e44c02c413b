"""What a server's tool becomes here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from wayline.contracts.nearest import nearest_names
from wayline.contracts.server_config import ServerOAuth, ServerSettings, ToolSettings
from wayline.contracts.tools import Effect
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.tool_catalogue import (
    admit,
    admit_all,
    effect_of,
    own_names,
    proposed_effect,
    select,
)


@dataclass
class Hints:
    read_only_hint: bool | None = None
    idempotent_hint: bool | None = None
    destructive_hint: bool | None = None
    open_world_hint: bool | None = None
    title: str | None = None


@dataclass
class Offered:
    name: str = "pay"
    annotations: Hints | None = None
    description: str | None = None
    input_schema: dict[str, Any] = field(default_factory=dict)
    title: str | None = None
    output_schema: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


def server(**more: Any) -> ServerSettings:
    return ServerSettings(**{"name": "bank", "url": "http://bank", **more})


@pytest.mark.parametrize(
    ("hints", "settings", "effect"),
    [
        (None, server(trusted=True), Effect.ONCE),
        (Hints(), server(trusted=True), Effect.ONCE),
        (Hints(read_only_hint=True), server(trusted=True), Effect.READ),
        (Hints(idempotent_hint=True), server(trusted=True), Effect.IDEMPOTENT),
        (Hints(read_only_hint=True), server(), Effect.ONCE),
        (Hints(idempotent_hint=True), server(), Effect.ONCE),
        (Hints(read_only_hint=True), server(trusted=True, effects={"pay": "once"}), Effect.ONCE),
        (None, server(effects={"pay": "reconcile"}), Effect.RECONCILE),
    ],
)
def test_the_effect_is_declared_or_hinted_by_trusted_servers_else_worst(hints, settings, effect):
    assert effect_of(Offered(annotations=hints), settings) is effect


@pytest.mark.parametrize(
    ("hints", "settings", "proposed"),
    [
        (None, server(), None),
        (Hints(), server(), None),
        (Hints(read_only_hint=True), server(), Effect.READ),
        (Hints(idempotent_hint=True), server(), Effect.IDEMPOTENT),
        (Hints(idempotent_hint=True, destructive_hint=True), server(), Effect.IDEMPOTENT),
        (Hints(read_only_hint=True, destructive_hint=True), server(), None),
        (Hints(read_only_hint=True), server(trusted=True), None),
        (Hints(read_only_hint=True), server(effects={"pay": "once"}), None),
    ],
)
def test_hints_propose_an_effect_where_none_is_declared(hints, settings, proposed):
    assert proposed_effect(Offered(annotations=hints), settings) is proposed


def test_a_tool_that_cannot_be_used_is_left_out():
    offered = [Offered("a.b"), Offered("a.b"), Offered("bad", input_schema={"type": 7})]

    admitted = admit_all(offered, server(), Arguments(), retry_after_s=())

    assert {name: tool.offered_as for name, tool in admitted.tools.items()} == {"bank__a_b": "a.b"}
    assert admitted.left_out.keys() == {"bad"}
    assert admitted.left_out["bad"].startswith("its schema cannot be used ($.type: 7 is not")


def test_tools_whose_names_become_one_are_all_offered():
    names = ["ns.x", "ns/x", "ns:x", "ns_x"]

    admitted = admit_all([Offered(name) for name in names], server(), Arguments(), retry_after_s=())

    assert admitted.left_out == {}
    assert [tool.offered_as for tool in admitted.tools.values()] == names
    assert admitted.tools["bank__ns_x"].offered_as == "ns.x"
    assert all(name == tool.name and len(name) <= 64 for name, tool in admitted.tools.items())


def test_a_name_stays_its_tools_whatever_is_listed_first_or_withheld():
    names = own_names("bank", ["ns_x", "ns.x", "pay"])
    rest = admit_all([Offered("ns_x")], server(), Arguments(), retry_after_s=(), names=names)

    assert names == own_names("bank", ["pay", "ns.x", "ns_x"])
    assert (names["ns.x"], names["pay"]) == ("bank__ns_x", "bank__pay")
    assert [(name, tool.offered_as) for name, tool in rest.tools.items()] == [(names["ns_x"], "ns_x")]
    assert names["ns_x"] not in ("bank__ns_x", "bank__pay")


def test_a_tools_own_settings_win_over_its_servers():
    settings = server(timeout_s=9, in_order=True, tools={"pay": ToolSettings(timeout_s=3, retry_after_s=())})

    paid, other = (admit(Offered(name=name), settings, retry_after_s=(1, 2)) for name in ("pay", "ask"))

    assert (paid.name, paid.definition.timeout_s, paid.definition.in_order, paid.retry_after_s) == (
        "bank__pay",
        3,
        True,
        (),
    )
    assert (other.name, other.definition.timeout_s, other.retry_after_s) == ("bank__ask", 9, (1, 2))


def test_a_tool_name_is_made_valid_and_the_servers_is_kept():
    tool = admit(Offered(name="files/read.all " + "x" * 80), server(), retry_after_s=())

    assert tool.name == "bank__files_read_all_" + "x" * 43
    assert tool.offered_as.startswith("files/read.all ")


@pytest.mark.parametrize(
    "name", ["web_fetch", "rates__rate", "../rates__rate", "\u200brates__rate", "__rates__rate", "use_tool"]
)
def test_no_tool_of_a_server_takes_the_name_of_another(name: str):
    admitted = admit(Offered(name=name), server(), retry_after_s=())

    assert admitted.name.startswith("bank__")
    assert admitted.name.partition("__")[0] == "bank"


@pytest.mark.parametrize("name", ["rates__rate", "rates_", "Rates", "rates\u200b", ""])
def test_no_server_has_a_name_that_reads_as_anothers_tool(name: str):
    with pytest.raises(ValidationError):
        ServerSettings(name=name, url="http://bank")


def test_a_definition_is_admitted_as_a_model_may_read_it():
    offered = Offered(description="Pay.\U000e0041\u202e", input_schema={"properties": {"a": {"title": "A\u200b"}}})

    definition = admit(offered, server(), retry_after_s=()).definition

    assert (definition.description, definition.input_schema) == ("Pay.", {"properties": {"a": {"title": "A"}}})


ELSEWHERE = (
    {"url": "http://other/mcp"},
    {"url": "http://bank/mcp", "sse": True},
    {"url": "http://bank/mcp", "oauth": ServerOAuth(credentials="user")},
    {"url": "http://bank/mcp", "headers": {"X-Account": SecretStr("1")}},
    {"url": "http://bank/mcp?account=1"},
    {"url": None, "command": "bank"},
    {"url": None, "command": "bank", "args": ("--fast",)},
)


def test_an_approval_holds_for_the_place_where_calls_went():
    here = admit(Offered(), server(url="http://bank/mcp"), retry_after_s=())
    others = [admit(Offered(), server(**place), retry_after_s=()) for place in ELSEWHERE]
    secret, another = (
        admit(Offered(), server(url="http://bank/mcp", headers={"X-Account": SecretStr(value)}), retry_after_s=())
        for value in ("1", "2")
    )

    assert here.unapproved(here.digest) is None
    assert len({here.digest, *(other.digest for other in others)}) == 1 + len(others)
    assert all("has changed" in str(other.unapproved(here.digest)) for other in others)
    # A hash of its value could be guessed from.
    assert secret.digest == another.digest


def test_an_approval_without_a_place_holds_for_the_definition():
    tool, other = (admit(Offered(description=text), server(), retry_after_s=()) for text in ("Pay.", "Send."))
    before = tool.definition.model_copy(update={"reached": ""})

    assert tool.unapproved(before.digest) is None
    assert "has changed" in str(other.unapproved(before.digest))
    assert "has changed" in str(tool.unapproved(f"at-{before.digest}"))


def test_a_selection_is_sorted_and_matches_whole_names():
    tools = {f"bank__{name}": admit(Offered(name=name), server(), retry_after_s=()) for name in ("pay", "ask", "all")}

    assert [d.name for d in select(tools, ["bank__a*"])] == ["bank__all", "bank__ask"]
    assert [d.name for d in select(tools, ["bank"])] == []


@pytest.mark.parametrize(("asked", "meant"), [("search_knowlege", "search_knowledge"), ("zzz", None)])
def test_the_nearest_name_is_offered_only_when_it_is_near(asked, meant):
    assert next(iter(nearest_names(asked, ["search_knowledge", "get_current_time"])), None) == meant
