"""The bus that tests of services run on tells what production would refuse."""

from pathlib import Path

from wayline.chassis import Bus
from wayline.testkit import until
from wayline.testkit.fixtures import NatsFactory
from wayline.testkit.guarded import Guarded, config, identity_seeds


async def test_every_permission_refusal_of_a_service_is_recorded(nats_factory: NatsFactory, tmp_path: Path):
    seeds = identity_seeds()
    guarded = Guarded(await nats_factory(config=config(tmp_path / "streams", seeds)), seeds)
    bus = await Bus.connect(guarded.settings("tracing"), service="tracing", exit_when_closed=False)

    await bus.nc.publish("jobs.run.interactive.default", b"")
    await bus.nc.subscribe("signals.*.*")
    await bus.nc.flush()

    await until(lambda: len(guarded.refusals()) == 2, why="the server has written both down")
    assert "jobs.run.interactive.default" in guarded.refusals()[0]
    assert "signals.*.*" in guarded.refusals()[1]
    await bus.close()
