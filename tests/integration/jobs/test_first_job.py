"""One job through router and executor on a real bus."""

from wayline.contracts.jobs import SubmitJob


async def test_a_job_published_on_the_bus_is_answered(platform):
    await platform.start("router", "executor", "tool_registry")

    await platform.submit(SubmitJob(tenant="default", agent="assistant", input="What is a lease?", job_id="j1"))

    job = await platform.wait_for("j1")
    assert job.status == "completed", job
    print(job)
