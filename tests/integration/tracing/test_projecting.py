"""The log becomes a tree, steps and money, each event once."""

from decimal import Decimal

from tests.integration.tracing.conftest import Log, Platform, Start, outline


async def test_a_job_becomes_one_tree(platform: Platform, start: Start):
    await start()
    await Log(platform.bus).whole()
    await platform.drained()

    trace = await platform.trace("j1")

    assert outline(trace.root) == [
        "invoke_agent assistant",
        "  step 1",
        "    chat claude",
        "    execute_tool search",
        "  step 2",
        "    chat claude",
    ]
    assert trace.totals.tokens == 30
    assert trace.totals.cost_usd == Decimal("0.012")
