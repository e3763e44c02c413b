"""In the JSON protocol a script sees the same turns, calls and results as with native tools."""

from __future__ import annotations

import json
from typing import Any

from wayline.simulator import Asked, Call, Offered, Say, Turn, by_rules, rounds
from wayline.simulator.scripts.protocol import in_envelope, understood

ASKS = 'Answer with {"thinking", "action", "tool_calls", "response", "confidence"}.'
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"q": {"type": "string"}}}
AS_HEADINGS = (
    f"# How to answer\n\n{ASKS}\n\n# Tools\n\n## search\nFinds.\nparameters: {json.dumps(SCHEMA)}\n\n## send_mail"
)
AS_LIST = f"{ASKS}\nTools:\n- `search`: finds\n- send_mail (slow)"
AS_JSON = f'{ASKS}\n[{{"name": "search"}}, {{"name": "send_mail"}}]'


def asked(system: str, *turns: Turn) -> Asked:
    return understood(
        Asked(1, "", "openai_chat", "local-chat", {}, system=system, turns=(Turn("user", "Find it."), *turns))
    )


def test_tools_are_read_from_every_style_of_system_prompt():
    for system in (AS_HEADINGS, AS_LIST, AS_JSON):
        assert [tool.name for tool in asked(system).tools] == ["search", "send_mail"]
        assert asked(system).speaks_json

    assert asked(AS_HEADINGS).tools[0] == Offered("search", "", SCHEMA)


def test_another_system_prompt_asks_for_no_protocol():
    assert not asked("Be brief.\n- search: finds").tools


def test_a_schema_that_is_asked_for_in_words_is_the_answers():
    wanted = f"The final answer is JSON, valid by this JSON Schema:\n{json.dumps(SCHEMA)}"

    for system in (f"Be brief.\n\n{wanted}", f"{AS_HEADINGS}\n\n{wanted}"):
        assert asked(system).schema == SCHEMA
    assert [tool.name for tool in asked(f"{AS_HEADINGS}\n\n{wanted}").tools] == ["search", "send_mail"]
    assert asked(AS_HEADINGS).schema is None


def test_envelopes_are_calls_and_what_follows_them_their_results():
    say = Say(text="Looking.", tools=(("search", {"q": "a"}), ("search", {"q": "b"})))
    request = asked(
        AS_LIST,
        Turn("assistant", in_envelope(say).text),
        Turn("user", "[RESULT of call 1, search]\nA log."),
        Turn("user", "[CONTEXT]\nIt is Sunday."),
        Turn("user", "[ERROR of call 2, search]\nAway."),
        Turn("user", "And now?"),
    )

    assert request.turns[1] == Turn(
        "assistant", "Looking.", (Call("1.0", "search", {"q": "a"}), Call("1.1", "search", {"q": "b"}))
    )
    assert request.turns[2] == Turn("tool", "A log.", call_id="1.0", tool="search")
    assert request.turns[4] == Turn("tool", "Away.", call_id="1.1", tool="search", failed=True)
    assert (request.text, request.results) == ("And now?", ())


def test_one_message_may_hold_all_results():
    say = Say(tools=(("search", {"q": "a"}), ("search", {"q": "b"})))
    request = asked(
        AS_LIST, Turn("assistant", in_envelope(say).text), Turn("user", "A log. Away."), Turn("user", "So?")
    )

    assert [turn.role for turn in request.turns] == ["user", "assistant", "tool", "user"]


def test_rules_and_rounds_go_on_as_with_native_tools():
    first = asked(AS_HEADINGS)
    says = by_rules(first)
    then = asked(AS_HEADINGS, Turn("assistant", in_envelope(says).text), Turn("user", "[RESULT of call 1]\nA log."))

    assert says == Say(tools=(("search", {"q": "Find it."}),))
    assert by_rules(then) == Say(text="From 1 results: A log.")
    assert rounds(Say(text="one"), Say(text="two"))(then) == Say(text="two")
