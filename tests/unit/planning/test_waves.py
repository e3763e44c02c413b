"""Waves keep to every dependency but those that were cut, one weakest of each cycle."""

from hypothesis import given
from hypothesis import strategies as st

from wayline.planning import TASKS_MAX, Dependency, Task, prioritized, strongest, waves

NODES = [f"T{n}" for n in range(1, 9)]
EDGES = st.lists(
    st.builds(Dependency, st.sampled_from(NODES), st.sampled_from([*NODES, "gone"]), st.floats(0.1, 1)), max_size=30
)
TASKS = [Task(one, one) for one in NODES]


def needs(*pairs):
    return [Dependency(task, other, weight) for task, other, weight in pairs]


@given(EDGES, st.permutations(TASKS))
def test_every_task_is_in_one_wave_behind_all_that_it_needs(dependencies, tasks):
    found = waves(tasks, dependencies)

    place = {one: at for at, wave in enumerate(found.waves) for one in wave}
    assert sorted(place) == NODES and sum(map(len, found.waves)) == len(NODES)
    assert all(place[one.task] > place[one.needs] for one in found.dependencies)
    # As early as can be: each but those of the first wave needs one of the wave before.
    behind = {(one.task, place[one.needs]) for one in found.dependencies}
    assert all((one, at - 1) in behind for one, at in place.items() if at)


@given(EDGES)
def test_only_the_weakest_of_a_cycle_is_cut(dependencies):
    found = waves(TASKS, dependencies)

    known = {(one.task, one.needs): one for one in strongest(dependencies)}
    cut = {(one.cut.task, one.cut.needs) for one in found.cycles}
    kept = {(one.task, one.needs) for one in found.dependencies}
    assert kept | cut == {edge for edge in known if "gone" not in edge} and not kept & cut
    for cycle in found.cycles:
        steps = list(zip(cycle.tasks, (*cycle.tasks[1:], cycle.tasks[0]), strict=True))
        assert steps[0] == (cycle.cut.task, cycle.cut.needs)
        assert all(known[step].weight >= cycle.cut.weight for step in steps)
        # With it the others would close a cycle again.
        assert waves(TASKS, [*found.dependencies, cycle.cut]).cycles


@given(EDGES, st.permutations(NODES))
def test_the_order_keeps_to_needs_else_to_what_was_asked(dependencies, order):
    found = waves(TASKS, dependencies)

    done = prioritized(TASKS, found, order=order)

    place = {one: at for at, one in enumerate(done)}
    assert sorted(done) == NODES
    assert all(place[one.task] > place[one.needs] for one in found.dependencies)
    if not found.dependencies:
        assert done == order


@given(EDGES, st.permutations(NODES))
def test_the_order_of_the_input_changes_nothing(dependencies, order):
    assert waves([Task(one, one) for one in order], dependencies).waves == waves(TASKS, dependencies).waves


def test_a_cycle_is_reported_and_cut_at_its_weakest_dependency():
    found = waves(TASKS[:3], needs(("T1", "T2", 0.9), ("T2", "T3", 0.4), ("T3", "T1", 0.8)))

    assert [(one.tasks, one.cut.weight) for one in found.cycles] == [(("T2", "T3", "T1"), 0.4)]
    assert found.waves == (("T2",), ("T1",), ("T3",))


def test_in_a_wave_the_priority_decides_and_then_the_id():
    tasks = [Task("T10", ""), Task("T2", ""), Task("T9", "", priority=2), Task("T30", "", priority=1)]

    assert waves(tasks, []).waves == (("T30", "T9", "T2", "T10"),)


def test_what_most_work_waits_for_comes_first_where_nobody_says_otherwise():
    tasks = [Task(one, one) for one in ("a", "b", "c")]
    found = waves(tasks, needs(("c", "b", 1)))

    assert prioritized(tasks, found) == ["b", "a", "c"]


def test_a_thousand_tasks_in_rings_end_in_valid_waves():
    tasks = [Task(f"T{n}", "x") for n in range(TASKS_MAX)]
    rings = [(f"T{n}", f"T{(n + step) % TASKS_MAX}", 0.5) for n in range(TASKS_MAX) for step in (1, -1)]

    found = waves(tasks, needs(*rings))

    place = {one: at for at, wave in enumerate(found.waves) for one in wave}
    assert len(place) == TASKS_MAX
    assert all(place[one.task] > place[one.needs] for one in found.dependencies)
