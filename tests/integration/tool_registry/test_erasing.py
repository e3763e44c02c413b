"""What the registry keeps of a job's calls is counted and erased."""

from wayline.contracts.forgetting import Erased, EraseFromRegistry

from .test_ledger_rules import PAY


async def test_calls_of_a_job_are_erased_with_their_results(platform):
    await platform.registry()
    ours, others = platform.ask(PAY, {"amount": 3}), platform.ask(PAY, {"amount": 4}, job="j2")
    await platform.call(ours)
    await platform.call(others)
    asked = EraseFromRegistry(tenant=platform.tenant, user_id="ann", job_ids=("j1",))

    counted = await platform.bus.ask(asked.model_copy(update={"count_only": True}), Erased)
    erased = await platform.bus.ask(asked, Erased)
    again = await platform.bus.ask(asked, Erased)

    assert counted == erased == Erased(counts={"tool_calls": 1})
    assert again == Erased()
    assert await platform.row(ours.key) is None
    assert await platform.row(others.key) is not None
