"""Which version of an agent answers: by label, by share, by session, and the same however often it is asked for."""

from __future__ import annotations

import asyncio
from collections import Counter
from decimal import Decimal

import pytest

from wayline.contracts.agent_labels import LABELS_MAX, LabelConfig
from wayline.contracts.agents import AgentConfig
from wayline.contracts.errors import NotFound, Reject
from wayline.contracts.jobs import Fork, JobOptions, SubmitJob
from wayline.router.admission.conditions import AdmissionRequest, Admitted

from .conftest import TENANT, Office, Offices

JOBS = 1_000


async def with_versions(office: Office, versions: int = 3) -> None:
    for number in range(1, versions + 1):
        await office.agents.put(TENANT, "reviewer", AgentConfig(description=f"the {number}."))


async def label(office: Office, name: str, version: int, share: float | None = None) -> None:
    await office.labels.put(TENANT, "reviewer", name, LabelConfig(version=version, share=share))


def asked(job_id: str, *, session: str | None = None, label: str | None = None, agent: str = "reviewer") -> SubmitJob:
    options = JobOptions(agent_label=label)
    return SubmitJob(tenant=TENANT, agent=agent, input="x", job_id=job_id, session_id=session, options=options)


async def admitted(office: Office, job: SubmitJob) -> Admitted | Reject:
    return await office.admissions.admit(TENANT, AdmissionRequest.of(job, job.job_id or ""))


async def answering(office: Office, job: SubmitJob) -> tuple[int, str | None]:
    found = await admitted(office, job)
    assert isinstance(found, Admitted)
    return found.agent.version, found.label


async def test_shares_hold_over_a_thousand_jobs_and_each_keeps_its_version(offices: Offices):
    office, other = await offices(), await offices()
    await with_versions(office)
    await label(office, "production", 1)
    await label(office, "candidate", 2, 0.1)
    await label(office, "second", 3, 0.25)
    jobs = [asked(f"j{n}") for n in range(JOBS)]

    first = await asyncio.gather(*(answering(office, job) for job in jobs))
    # The labels move before the messages come again, to another router.
    await label(office, "candidate", 3, 0.75)
    await office.labels.delete(TENANT, "reviewer", "second")
    again = await asyncio.gather(*(answering(other, job) for job in jobs))

    shares = Counter(first)
    assert set(shares) == {(1, "production"), (2, "candidate"), (3, "second")}
    assert 70 <= shares[2, "candidate"] <= 130 and 205 <= shares[3, "second"] <= 295
    assert again == first


async def test_a_job_takes_the_label_that_it_asks_for(offices: Offices):
    office = await offices()
    await with_versions(office)
    await label(office, "candidate", 1, 1.0)
    await label(office, "stable", 2)

    assert await answering(office, asked("j1")) == (1, "candidate")
    assert await answering(office, asked("j2", label="stable")) == (2, "stable")
    assert await answering(office, asked("j3", label="candidate")) == (1, "candidate")
    await office.labels.delete(TENANT, "reviewer", "candidate")
    assert await answering(office, asked("j4")) == (3, None)
    assert await answering(office, asked("j5", agent="assistant")) == (1, None)


async def test_a_label_that_is_gone_is_refused_and_nothing_is_begun(offices: Offices):
    office = await offices()
    await with_versions(office)
    await label(office, "candidate", 2)
    await office.labels.delete(TENANT, "reviewer", "candidate")

    refused = await admitted(office, asked("j1", label="candidate", session="s1"))
    unknown = await admitted(office, asked("j2", label="candidate", agent="nobody"))

    assert isinstance(refused, Reject) and (refused.code, refused.status) == ("unknown_label", 404)
    assert "'reviewer' has the label 'candidate'" in str(refused)
    assert isinstance(unknown, Reject) and unknown.code == "unknown_agent"
    begun = "SELECT count(*) FROM (SELECT job_id FROM reservations UNION SELECT job_id FROM session_turns) AS begun"
    assert (await office.store.fetchrow(TENANT, begun) or {})["count"] == 0
    with pytest.raises(NotFound, match="reviewer/9"):
        await label(office, "candidate", 9)


async def test_a_session_stays_on_its_version_until_it_asks_for_another(offices: Offices):
    office = await offices()
    await with_versions(office)
    before = await answering(office, asked("j1", session="s1"))
    await label(office, "production", 1)
    stays = await answering(office, asked("j2", session="s1"))
    new = await answering(office, asked("j3", session="s2"))
    await label(office, "production", 2)
    went_on = await answering(office, asked("j4", session="s2"))
    moved = await answering(office, asked("j5", session="s2", label="production"))
    after = await answering(office, asked("j6", session="s2"))

    # It began before there were labels.
    assert (before, stays) == ((3, None), (3, None))
    assert (new, went_on, moved, after) == (
        (1, "production"),
        (1, "production"),
        (2, "production"),
        (2, "production"),
    )


async def test_two_first_jobs_of_a_session_go_to_one_version(offices: Offices):
    office = await offices()
    await with_versions(office, 2)
    await label(office, "candidate", 1, 0.5)
    sessions = [f"s{n}" for n in range(40)]

    requests = [asked(f"{session}-{n}", session=session) for session in sessions for n in range(2)]
    found = await asyncio.gather(*(answering(office, job) for job in requests))

    assert found[::2] == found[1::2] and len(set(found)) == 2


async def test_a_job_may_spend_what_its_version_allows(offices: Offices):
    office = await offices()
    await office.agents.put(TENANT, "reviewer", AgentConfig(max_cost_usd=Decimal(1)))
    await office.agents.put(TENANT, "reviewer", AgentConfig(max_cost_usd=Decimal(9)))
    await label(office, "candidate", 1)

    caps = [await admitted(office, asked(f"j{n}", label=name)) for n, name in enumerate(("candidate", None))]

    assert [one.cap_usd for one in caps if isinstance(one, Admitted)] == [1, 9]
    rows = await office.store.fetch(TENANT, "SELECT cap_usd FROM reservations ORDER BY job_id")
    assert [row["cap_usd"] for row in rows] == [1, 9]


async def test_shares_are_no_more_than_all_jobs_and_labels_are_bounded(offices: Offices):
    office = await offices()
    await with_versions(office)
    await label(office, "candidate", 1, 0.7)
    await label(office, "candidate", 2, 0.6)
    await label(office, "second", 3, 0.4)
    for name, share in (("third", 0.01), ("production", 0.1)):
        with pytest.raises(Reject) as refused:
            await label(office, name, 1, share)
        assert (refused.value.code, refused.value.status) == ("invalid_share", 422)
    for number in range(LABELS_MAX - 2):
        await label(office, f"l{number}", 1)
    with pytest.raises(Reject, match="labels at most"):
        await label(office, "more", 1)

    labels = (await office.labels.of_agents(TENANT, ["reviewer"]))["reviewer"]
    assert [(one.label, one.version, one.share) for one in labels if one.share] == [
        ("candidate", 2, 0.6),
        ("second", 3, 0.4),
    ]


async def test_a_deleted_agent_loses_its_labels(offices: Offices):
    office = await offices()
    await with_versions(office)
    await label(office, "production", 1)
    await office.agents.delete(TENANT, "reviewer")
    await office.agents.restore(TENANT, "reviewer", None)

    assert await office.labels.of_agents(TENANT, ["reviewer"]) == {}
    assert await answering(office, asked("j1")) == (4, None)


def test_forks_ask_for_no_label_and_plans_fall_in_no_share():
    fork = asked("j1", label="candidate").model_copy(update={"fork": Fork(job_id="j0")})

    assert AdmissionRequest.of(fork, "j1").label is None
    assert AdmissionRequest.of(asked("j1").model_copy(update={"job_id": None}), "").lot == 1.0


async def test_a_label_given_while_its_agent_was_deleted_counts_for_nothing(offices: Offices):
    office = await offices()
    await with_versions(office, 1)
    await office.agents.delete(TENANT, "reviewer")
    async with office.store.tenant(TENANT) as conn:
        await conn.execute(office.store.sql.put_agent_label, TENANT, "reviewer", "candidate", 1, 1.0)
    await office.agents.put(TENANT, "reviewer", AgentConfig(description="anew."))
    await label(office, "production", 2)
    await office.agents.put(TENANT, "reviewer", AgentConfig(description="newest."))

    assert await answering(office, asked("j1")) == (2, "production")
    assert [one.label for one in (await office.labels.of_agents(TENANT, ["reviewer"]))["reviewer"]] == ["production"]
    await label(office, "second", 3, 1.0)
