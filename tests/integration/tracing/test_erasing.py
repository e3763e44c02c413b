"""What tracing shows of a user or a job is erased; what it cost stays, without a name."""

from wayline.contracts.forgetting import Erased, EraseFromTracing
from wayline.contracts.traces import CostTable, GetCosts

from .conftest import Log, Start, TracingPlatform


async def test_jobs_are_erased_and_their_costs_stay_without_a_name(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await Log(platform.bus, job_id="kept").whole()
    await Log(platform.bus, tenant="globex").whole()
    await platform.wait_until_read()
    await platform.rows("UPDATE ledger SET user_id = 'ann', session_id = 's1' WHERE job_id = 'j1' RETURNING 1")
    before = await platform.bus.ask(GetCosts(tenant="acme"), CostTable)
    asked = EraseFromTracing(tenant="acme", job_ids=("j1",), samples=("no text of anybody holds these words",))

    counted = await platform.bus.ask(asked.model_copy(update={"count_only": True}), Erased)
    erased = await platform.bus.ask(asked, Erased)
    again = await platform.bus.ask(asked, Erased)

    assert counted == erased
    assert {"jobs", "spans", "steps", "ledger_names"} <= set(erased.counts) and erased.counts["jobs"] == 1
    assert again.counts == {} and again.kept == erased.kept == {"ledger_entries_without_a_name": 3}
    left = await platform.rows("SELECT tenant, job_id FROM jobs ORDER BY 1, 2")
    assert [tuple(one.values()) for one in left] == [("acme", "kept"), ("globex", "j1")]
    after = await platform.bus.ask(GetCosts(tenant="acme"), CostTable)
    assert after.total == before.total
    named = await platform.rows("SELECT user_id FROM ledger WHERE tenant = 'acme' AND user_id = 'ann'")
    assert named == []


async def test_words_that_others_use_too_are_told_and_kept(platform: TracingPlatform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await platform.wait_until_read()
    (said,) = await platform.rows("SELECT input FROM jobs")

    asked = EraseFromTracing(tenant="acme", user_id="ann", count_only=True, samples=(said["input"],))
    found = await platform.bus.ask(asked, Erased)

    assert found == Erased(kept={"rows_of_other_jobs_with_the_same_words": 1})
