"""Dependencies are found in what tasks and documents say, with the words that say so."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.planning import QUOTE_MAX_CHARS, TASKS_MAX, Passage, Task, TooManyTasks, detect_dependencies, waves

SHOP = json.loads((Path(__file__).parent / "coffee_shop.json").read_text())


def edges(found):
    return {(one.task, one.needs) for one in found.dependencies}


def two(text, *, name="Send the invitations", other="Book the venue"):
    return detect_dependencies([Task("A", other), Task("B", name, text)], weight_min=0.5)


def test_thirty_tasks_have_their_dependencies_and_three_cycles():
    tasks = [Task(one["id"], one["name"], one.get("text", "")) for one in SHOP["tasks"]]
    wanted = {tuple(one) for one in SHOP["dependencies"]}

    found = detect_dependencies(tasks)

    assert (len(tasks), len(wanted)) == (30, 45)
    assert len(edges(found) & wanted) >= 0.95 * len(wanted)
    assert len(edges(found) - wanted) <= 2
    cycles = waves(tasks, found.dependencies).cycles
    assert {frozenset(cycle.tasks) for cycle in cycles} == {frozenset(cycle) for cycle in SHOP["cycles"]}


@pytest.mark.parametrize(
    "text",
    [
        "After A.",
        "Depends on A",
        "blocked by A until Friday",
        "Needs the venue booked.",
        "Requires task A",
        "Once the venue is booked.",
        "Do not start before A.",
        "It cannot begin before the venue is booked.",
        "We can't go on until A is done.",
        "Once the venue is booked, write to everybody.",
        "As soon as the booking of the venue is confirmed",
        "Nach A.",
        "Hängt ab von A",
        "Sobald A fertig ist",
        "Après A",
        "dépend de A",
        "Después de A",
        "requiere A",
        "После A",
        "зависит от A",
        "依赖 A",
        "A 完成后",
        "A の後に",
        "A 이후에",
        "بعد A",
    ],
)
def test_a_cue_and_a_task_beside_it_are_a_dependency(text):
    assert edges(two(text)) == {("B", "A")}


@pytest.mark.parametrize(
    "text", ["Before A.", "Blocks A", "prerequisite for A", "Bevor A beginnt", "avant A", "A 之前"]
)
def test_a_task_before_another_is_needed_by_it(text):
    assert edges(two(text)) == {("A", "B")}


@pytest.mark.parametrize(
    "text", ["Does not depend on A.", "Independent.", "Needs no venue.", "When the sun shines", "after B", "After all."]
)
def test_negations_and_other_things_are_no_dependency(text):
    assert edges(two(text)) == set()


def test_a_number_that_counts_something_is_no_task():
    tasks = [
        Task("2", "Dig a hole"),
        Task("3", "Plant the tree", "Takes 2 days, after 2 hours of rain, needs 2 people"),
    ]

    assert edges(detect_dependencies(tasks, weight_min=0.5)) == set()
    assert edges(detect_dependencies([tasks[0], Task("3", "Plant the tree", "after 2 is done")])) == {("3", "2")}


def test_several_tasks_behind_one_cue_are_all_needed():
    tasks = [Task(str(n), f"Part {n}") for n in (1, 2, 3)] + [Task("4", "Assemble", "After 1, 2 and 3, have a look.")]

    assert {needs for task, needs in edges(detect_dependencies(tasks)) if task == "4"} == {"1", "2", "3"}


def test_a_name_that_many_tasks_share_names_none():
    tasks = [Task(str(n), "Write the report") for n in range(5)] + [Task("x", "Rest", "after the report")]

    assert edges(detect_dependencies(tasks, weight_min=0.5)) == set()


def test_sentences_of_documents_name_both_tasks():
    tasks = [Task("T1", "Book the venue"), Task("T2", "Send the invitations"), Task("T3", "Order the food")]
    text = "The invitations are sent after the venue is booked. Once T2 is done, the food is ordered. All is well."

    found = detect_dependencies(tasks, [Passage("plan.md#1", text)])

    assert edges(found) == {("T2", "T1"), ("T3", "T2")}
    assert {one.source for one in found.dependencies} == {"plan.md#1"}
    assert found.dependencies[0].quote in text


def test_what_one_task_makes_a_later_one_uses():
    found = detect_dependencies([Task("1", "Write the quarterly report"), Task("2", "Send the report to the board")])

    assert [(one.task, one.needs, one.kind) for one in found.dependencies] == [("2", "1", "product")]


def test_a_task_that_begins_when_another_must_have_ended_needs_it():
    first = Task("1", "Hall: paint", "Due by 2026-05-01.")
    then = Task("2", "Hall: furnish", "Starts 3 May 2026.")

    assert [(one.task, one.kind) for one in detect_dependencies([then, first]).dependencies] == [("2", "date")]


def test_words_win_over_an_implied_order():
    tasks = [Task("1", "Write the report", "After 2 is done."), Task("2", "Send the report")]

    assert edges(detect_dependencies(tasks)) == {("1", "2")}


def test_nothing_is_implied_for_a_task_that_says_what_it_needs():
    first = [Task("1", "Write the report"), Task("2", "Book the room")]

    assert edges(detect_dependencies([*first, Task("3", "Send the report", "After 2 is done.")])) == {("3", "2")}
    assert edges(detect_dependencies([*first, Task("3", "Send the report")])) == {("3", "1")}


def test_too_many_tasks_are_refused():
    with pytest.raises(TooManyTasks, match="1001"):
        detect_dependencies([Task(str(n), "x") for n in range(TASKS_MAX + 1)])


def test_a_thousand_hostile_tasks_are_cut_and_not_endless():
    words = " ".join(f"w{n}" for n in range(38))
    tasks = [Task(f"T{n}", f"w{n % 38} {words}" * 9, f"after {words}. before " * 12) for n in range(TASKS_MAX)]

    found = detect_dependencies([*tasks[:-1], Task("x", "y" * 1_000_000, "after " * 1_000_000)])

    assert found.cut


TEXTS = st.text(alphabet=st.sampled_from("ab T1T2T3 ,.after needs before完成后\n#"), max_size=60)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=6), TEXTS)
def test_every_dependency_is_between_known_tasks_and_quotes_its_source(given_tasks, text):
    tasks = [Task(f"T{n}", name, body) for n, (name, body) in enumerate(given_tasks)]
    texts = {one.id: f"{one.name}\n{one.text}" for one in tasks}

    for one in detect_dependencies(tasks, [Passage("p", text)]).dependencies:
        assert one.task != one.needs and {one.task, one.needs} <= texts.keys()
        assert 0 < one.weight <= 1 and 0 < len(one.quote) <= QUOTE_MAX_CHARS
        assert one.quote in text if one.source else any(one.quote in said for said in texts.values())
