"""Which limit holds a job, in words, and how free places are given."""

from __future__ import annotations

from wayline.router.permits.permit_rules import Counted, FreePlaces, LimitUse, full_limit


def test_a_full_limit_says_how_many_jobs_run():
    full = full_limit([LimitUse("user", "*", 2, "wait", 2, before=False)])

    assert full is not None and full.words == "2 of the 2 jobs run that may run at once for each user"


def test_a_job_behind_others_says_that_they_wait_before_it():
    full = full_limit([LimitUse("agent", "clerk", 2, "wait", 1, before=True)])

    assert full is not None and full.words == "other jobs wait before it for one of the 2 places for agent clerk"


def test_a_place_is_free_where_every_limit_has_one():
    free = FreePlaces([("agent", "clerk", 2), ("user", "*", 1), ("user", "boss", 9)], [("clerk", "ann", None, 1)])

    assert (free.full("agent"), free.full("user"), free.full("key")) == ([], ["ann"], [])
    assert not free.take(Counted("clerk", "ann", None))
    assert free.take(Counted("clerk", "boss", "k1"))
    assert not free.take(Counted("clerk", "bob", None))
    assert free.take(Counted("other", "bob", "k1")) and not free.take(Counted("other", "bob", "k1"))
    assert (free.full("agent"), free.full("user")) == (["clerk"], ["ann", "bob"])
