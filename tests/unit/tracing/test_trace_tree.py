"""A trace is one tree, whatever its spans say about each other."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from wayline.contracts.traces import Span
from wayline.telemetry import names
from wayline.tracing.views import trace_tree
from wayline.tracing.views.trace_tree import DEPTH_MAX, TreeNode

AT = datetime(2026, 1, 1, tzinfo=UTC)


def node(span_id: str, parent: str | None = None, *, anchor: str | None = None, after_s: int = 0) -> TreeNode:
    start = AT + timedelta(seconds=after_s)
    return TreeNode(span_id, parent, anchor, span_id, "executor", "internal", start, 1.0, "ok")


def grown(*nodes: TreeNode) -> Span:
    return trace_tree.shown(trace_tree.grow(nodes, nodes[0]), "t")


def outline(span: Span) -> str:
    below = " ".join(outline(child) for child in span.children)
    return f"{span.name}({below})" if below else span.name


def count(span: Span) -> int:
    return 1 + sum(count(child) for child in span.children)


def test_children_hang_under_their_parents_oldest_first():
    root = grown(node("root"), node("b", "root", after_s=2), node("a", "root", after_s=1), node("c", "a"))

    assert outline(root) == "root(a(c) b)"


def test_a_lost_parent_is_replaced_by_anchor_else_root():
    root = grown(node("root"), node("step", "root"), node("x", "lost", anchor="step"), node("y", "lost", anchor="gone"))

    assert outline(root) == "root(step(x) y)"
    assert [child.parent_span_id for child in root.children] == ["root", "root"]


def test_parents_that_are_named_and_not_there_are_counted_once():
    root = node("root")
    nodes = [root, node("step", "root"), node("x", "lost"), node("y", "lost"), node("z", "gone", anchor="step")]

    trace_tree.grow(nodes, root)

    assert trace_tree.missing(nodes, root) == 2


def test_an_answered_call_without_a_registry_span_counts_as_missing():
    root = node("root")
    asked, seen, own, running = (node(name, "root") for name in ("asked", "seen", "own", "running"))
    for call in (asked, seen, running):
        call.attributes[names.EFFECT] = "read"
    running.status = "open"
    nodes = [asked, seen, own, running, node("process tools.call", "seen")]

    trace_tree.grow(nodes, root)

    assert trace_tree.missing(nodes, root) == 1


def test_a_circle_of_parents_is_cut_and_hung_under_the_root():
    root = grown(node("root"), node("a", "b"), node("b", "a"), node("self", "self"))

    assert outline(root) == "root(self a(b))"


def test_a_trace_of_no_job_begins_at_its_earliest_top():
    nodes = [node("late", after_s=5), node("orphan", "lost"), node("early", after_s=1)]

    assert trace_tree.first_of(nodes).span_id == "early"


def test_a_tree_is_never_deeper_than_its_readers_can_go():
    chain = [node("n0"), *(node(f"n{i}", f"n{i - 1}", after_s=i) for i in range(1, 500))]

    root = grown(*chain)

    assert count(root) == 500
    depth, span = 0, root
    while span.children:
        depth, span = depth + 1, span.children[0]
    assert depth == DEPTH_MAX + 1


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=12))
def test_every_span_is_in_the_tree_exactly_once(edges: list[tuple[int, int]]):
    nodes = [node("root"), *(node(f"n{i}", f"n{p}", anchor=f"n{a}") for i, (p, a) in enumerate(edges))]

    assert count(grown(*nodes)) == len(nodes)
