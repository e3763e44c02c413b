"""Tables: drawn for people, and plain for other programs."""

import io

from rich.console import Console
from rich.markup import escape

from wayline.standalone.terminal.list_views import backtest_table, found_tools
from wayline.standalone.terminal.money_views import budgets_table, costs_table
from wayline.standalone.terminal.session_views import session_details
from wayline.standalone.terminal.table import details, table

LONG = "word " * 100
ROWS = [("j1", "[green]completed[/green]", escape("a [b]\tc\nd")), ("j2", "", LONG)]


def printed(what, *, terminal: bool) -> str:
    page = io.StringIO()
    Console(file=page, width=40, force_terminal=terminal, color_system=None, highlight=False).print(
        what, soft_wrap=True
    )
    return page.getvalue()


def test_into_a_pipe_rows_are_lines_of_tab_separated_columns():
    text = printed(table(("job", "status", "what"), ROWS, nothing="no jobs", total=("total",)), terminal=False)

    assert text == f"j1\tcompleted\ta [b] c d\nj2\t\t{LONG.strip()}\n"


def test_into_a_pipe_nothing_is_no_line():
    assert printed(table(("job",), [], nothing="no jobs"), terminal=False) == ""
    assert printed(costs_table({"rows": []}), terminal=False) == ""
    assert printed(budgets_table({"budgets": [], "job_budget_usd": "0.10"}), terminal=False) == ""


def test_on_a_terminal_a_table_has_heading_and_total():
    drawn = printed(table(("job", "status"), [("j1", "ready")], nothing="no jobs", total=("total",)), terminal=True)

    assert [line.split() for line in drawn.splitlines()] == [["job", "status"], ["j1", "ready"], ["total"]]
    assert printed(table(("job",), [], nothing="no jobs"), terminal=True) == "no jobs\n"


def test_into_a_pipe_a_detail_is_name_tab_value():
    drawn = details([("agent", escape("a [b]")), ("model", "x")])

    assert printed(drawn, terminal=False) == "agent\ta [b]\nmodel\tx\n"
    assert [line.split() for line in printed(drawn, terminal=True).splitlines()] == [
        ["agent", "a", "[b]"],
        ["model", "x"],
    ]


def test_a_session_is_drawn_with_its_cost_and_context():
    order = {"type": "order", "id": "A-17", "name": "Shoes [new]", "tool": "shop__find"}
    about = {"entities": [order], "tools_used": ["shop__find"], "tools_discovered": ["shop__pay"]}
    job = {"job_id": "j1", "status": "completed", "usage": {"input": 10, "output": 2, "cache_read": 9}}
    shown = {
        **{"session_id": "trip", "agent": "assistant", "user_id": None, "busy_with": None, "context": about},
        **{"cost_usd": "0.250", "cache_read_share": 0.805, "page": [{"number": 1, "job": {**job, "cost_usd": "0.25"}}]},
    }

    lines = printed(session_details(shown), terminal=False).splitlines()

    assert lines[2:-1] == [
        "cost\t$0.25",
        "cached\t80%",
        "about\torder A-17 (Shoes [new])",
        "tools used\tshop__find",
        "tools found\tshop__pay",
    ]
    assert lines[-1].split("\t")[:2] == ["1", "j1"]
    unknown = printed(session_details({**shown, "cost_usd": None, "cache_read_share": None}), terminal=False)
    assert "cost\tcost unknown\ncached\t-\n" in unknown


def test_into_a_pipe_a_backtest_is_its_rows_and_its_verdict():
    tiers = [{"was": "flash", "now": "premium", "jobs": 2}]
    comparison = {
        "policy": "p",
        "tiers": tiers,
        "same": 0,
        "jobs": 2,
        "decided_by": {"p": 2},
        "was_usd": "0",
        "now_usd": "1",
    }

    lines = printed(backtest_table({**comparison, "unknown_cost": 0}), terminal=False).splitlines()

    assert lines[:2] == ["policy p", "flash\tpremium\t2"]


def test_an_unusable_tool_is_shown_with_what_enables_it():
    away = {"name": "bank__pay", "why": "its server bank is disabled", "how": "`wayline mcp enable bank`"}

    said = printed(found_tools({"tools": [], "disabled": [], "unusable": [away], "searched": 3}), terminal=False)

    assert (
        "bank__pay fits too, but cannot be called: its server bank is disabled. "
        "To enable it: `wayline mcp enable bank`\n"
    ) in said
