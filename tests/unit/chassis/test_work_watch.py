"""One question for several looks: those that have work are told, and no more often than they want to be."""

from __future__ import annotations

from wayline.chassis.concurrency.work_watch import Look, WorkWatch

NEVER_S = 3_600.0


class Told:
    """Counts how often each look was told."""

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.due: list[str] = []

    async def ask(self) -> list[str]:
        return self.due

    def watch(self, **every_s: float) -> WorkWatch:
        looks = {name: Look(lambda name=name: self.looks.append(name), one) for name, one in every_s.items()}
        return WorkWatch(self.ask, looks)


async def test_only_looks_with_work_are_told():
    told = Told()
    watch = told.watch(permits=0.0, schedules=0.0)

    await watch.look()
    told.due = ["schedules"]
    await watch.look()
    await watch.look()

    assert told.looks == ["schedules", "schedules"]


async def test_a_look_is_told_no_more_often_than_it_wants():
    told = Told()
    watch = told.watch(budgets=NEVER_S, schedules=0.0)
    told.due = ["budgets", "schedules"]

    await watch.look()
    await watch.look()

    assert told.looks == ["budgets", "schedules", "schedules"]


async def test_a_watch_that_begins_tells_no_look_at_once():
    told = Told()
    watch = told.watch(budgets=NEVER_S)
    told.due = ["budgets"]

    await watch.start()
    await watch.look()
    await watch.stop(1)

    assert told.looks == []
