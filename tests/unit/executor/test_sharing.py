"""What jobs were routed with alike is one object for all of them, and what differs is not."""

import pytest
from pydantic import ValidationError

from wayline.contracts.agents import AgentConfig
from wayline.journal import Shared, decode, encode, fold, read_record

from .logs import Log


def values(log: Log):
    return decode(encode(log.events))


def test_jobs_that_were_asked_and_routed_alike_share_what_says_so():
    shared = Shared()

    one, other = (fold(shared.events(values(Log()))) for _ in range(2))

    assert one.routing.config is other.routing.config
    assert one.routing.candidates is other.routing.candidates
    assert one.routing.limits is other.routing.limits
    assert one.routing.route is other.routing.route
    assert one.life.submitted and other.life.submitted
    assert one.life.submitted.options is other.life.submitted.options


def test_what_is_shared_is_what_the_log_says():
    log = Log(config=AgentConfig(instructions="Be kind."))

    assert fold(Shared().events(values(log))) == fold(read_record(encode(log.events)))


def test_another_version_of_an_agent_is_another_configuration():
    shared = Shared()

    kind, stern = (
        fold(shared.events(values(Log(config=AgentConfig(instructions=instructions)))))
        for instructions in ("Be kind.", "Be stern.")
    )

    assert (kind.routing.config, stern.routing.config) == (
        AgentConfig(instructions="Be kind."),
        AgentConfig(instructions="Be stern."),
    )
    assert kind.routing.candidates is stern.routing.candidates


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("wayline.journal.sharing.KEPT_MAX_BYTES", 50_000)
    shared = Shared()

    def of(number: int) -> AgentConfig | None:
        return fold(shared.events(values(Log(config=AgentConfig(instructions=f"{number}" * 5_000))))).routing.config

    first = of(1)
    assert of(1) is first
    for number in range(2, 10):
        of(number)

    again = of(1)
    assert again == first
    assert again is not first


def test_a_record_without_them_is_refused_with_what_is_missing():
    submitted, routed, *_ = values(Log())
    del routed["config"]

    with pytest.raises(ValidationError, match="config"):
        Shared().events([submitted, routed])
