"""A job and the jobs that it started, as `wayline jobs show` draws them."""

import io

from rich.console import Console

from wayline.standalone.terminal.family_views import Member, family_cost, job_with_family


def job(name: str, cost_usd: str | None, status: str = "completed") -> dict:
    blank = dict.fromkeys(["route", "schedule", "agent_version", "input", "error", "waiting_for", "reason", "ended_at"])
    shown = {"job_id": name, "agent": "worker", "status": status, "cost_usd": cost_usd, "answer": "", "citations": []}
    rest = {"steps": 1, "usage": None, "partial": False, "created_at": "today", "trace_id": "t", "children": []}
    return {**blank, **shown, **rest}


def drawn(what) -> list[str]:
    page = io.StringIO()
    Console(file=page, width=120, force_terminal=True, color_system=None, highlight=False).print(what)
    return [line.rstrip() for line in page.getvalue().splitlines()]


def test_children_are_a_tree_with_their_status_and_cost():
    below = Member(job("c", "0.003", "failed"))
    family = Member(job("a", "0.01"), (Member(job("b", "0.02"), (below,)), Member(job("d", "0.004", "parked"))))

    lines = drawn(job_with_family(family.job, [], family))

    assert lines[lines.index("started") :] == [
        "started",
        "├── worker  b  completed  $0.02",
        "│   └── worker  c  failed  $0.003",
        "└── worker  d  parked  $0.004",
        "4 jobs together: $0.037",
    ]


def test_an_unknown_cost_is_no_part_of_the_familys_sum():
    family = Member(job("a", "0.01"), (Member(job("b", None)),))

    assert family_cost(family) == "2 jobs together: $0.01 and the unknown cost of 1 of them"


def test_a_job_without_children_has_no_tree():
    alone = Member(job("a", "0.01"))

    assert "started" not in drawn(job_with_family(alone.job, [], alone))
