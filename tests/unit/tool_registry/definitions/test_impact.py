"""Recorded calls compared with a changed definition."""

from __future__ import annotations

from wayline.contracts.tool_use import RecordedCall
from wayline.schemas import Budget
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.impact import CallCheck, ToolChange, compared

SCHEMA = {"type": "object", "required": ["amount"]}


def recorded(tool: str, arguments: dict | None, error: str | None = None) -> RecordedCall:
    return RecordedCall(job_id="j1", step=1, call="1", tool=tool, arguments=arguments, error=error)


def test_a_tool_is_compared_by_its_fingerprint():
    approved = {"same": "1", "other": "2", "lost": "3"}
    offered = {"same": "1", "other": "9", "fresh": "4"}

    found = compared(approved, offered, {"other": SCHEMA, "fresh": SCHEMA})

    assert {name: one.change for name, one in found.items()} == {
        "same": "unchanged",
        "other": "changed",
        "lost": "gone",
        "fresh": "new",
    }


def test_arguments_that_tracing_did_not_keep_are_unchecked():
    check = CallCheck({"pay": ToolChange("changed", SCHEMA), "lost": ToolChange("gone")}, Arguments())

    check.take([recorded("pay", None), recorded("pay", {"amount": 1}), recorded("pay", {}), recorded("lost", None)])

    pay = next(one for one in check.impact({"pay": 3, "lost": 1}) if one.tool == "pay")
    assert (pay.calls, pay.would_fail, pay.unchecked) == (3, 1, 1)
    assert [(one.tool, one.why) for one in check.failing] == [
        ("pay", "'amount' is a required property"),
        ("lost", "the server offers it no more"),
    ]


def test_every_call_fails_a_schema_that_is_none():
    check = CallCheck({"pay": ToolChange("changed", {"type": "nonsense"})}, Arguments())

    check.take([recorded("pay", {"amount": 1})])

    assert check.failed["pay"] == 1
    assert "nonsense" in check.failing[0].why


def test_every_call_of_an_unusable_tool_would_fail():
    changes = {"pay": ToolChange("unchanged", unusable="its schema is none"), "rate": ToolChange("unchanged")}
    check = CallCheck(changes, Arguments())

    check.take([recorded("pay", {"amount": 1}), recorded("pay", None)])

    assert check.tools == ["pay"]
    assert [(one.tool, one.would_fail, one.unchecked, one.unusable) for one in check.impact({"pay": 2, "rate": 1})] == [
        ("pay", 2, 0, "its schema is none"),
        ("rate", 0, 0, ""),
    ]


def test_a_call_that_was_refused_already_does_not_count():
    check = CallCheck({"pay": ToolChange("changed", SCHEMA), "lost": ToolChange("gone")}, Arguments())

    check.take([recorded("pay", {}, error) for error in ("invalid_arguments", "definition_changed", "tool_failed")])
    check.take([recorded("lost", None, "unknown_tool"), recorded("pay", None, "invalid_arguments")])

    found = {one.tool: (one.would_fail, one.unchecked) for one in check.impact({"pay": 4, "lost": 1})}
    assert found == {"pay": (1, 0), "lost": (0, 0)}


def test_calls_beyond_the_budget_are_unchecked():
    check = CallCheck({"pay": ToolChange("changed", SCHEMA)}, Arguments(), budget=Budget(10))

    check.take([recorded("pay", {}) for _ in range(20)])

    pay = check.impact({"pay": 20})[0]
    assert check.is_over
    assert 0 < pay.would_fail < 10
    assert pay.would_fail + pay.unchecked == 20
