"""The search box of the list of jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from wayline.console.pages.job_search import address, parse

NOW = datetime(2026, 5, 8, 12, tzinfo=UTC)


def test_words_and_conditions_become_parameters():
    found = parse(
        'refund "late invoice" agent:support status:failed status:parked cost:>0.1 seconds:<5 since:7d', now=NOW
    )

    assert found.problems == ()
    assert found.parameters == {
        "q": "refund late invoice",
        "agent": ["support"],
        "status": ["failed", "parked"],
        "cost_min": "0.1",
        "seconds_max": "5",
        "since": "2026-05-01T12:00:00+00:00",
    }


def test_a_chip_leads_to_the_list_without_its_condition():
    found = parse('late agent:"our support" status:failed', now=NOW)

    assert [(chip.text, chip.without) for chip in found.chips] == [
        ('agent:"our support"', "/jobs?s=late+status%3Afailed"),
        ("status:failed", "/jobs?s=late+agent%3A%22our+support%22"),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cost:0.1", "takes a bound"),
        ("seconds:>soon", "takes a bound"),
        ("since:lately", "takes an age"),
        ("colour:red", "is not known"),
    ],
)
def test_what_is_not_understood_is_said_and_not_asked_for(text: str, says: str):
    found = parse(text, now=NOW)

    assert found.parameters == {}
    assert says in found.problems[0]


def test_a_date_is_one_of_the_zone_that_pages_show():
    found = parse("since:2026-05-01 until:2026-05-02T00:00Z", now=NOW, zone=ZoneInfo("Europe/Zurich"))

    assert found.parameters == {"since": "2026-05-01T00:00:00+02:00", "until": "2026-05-02T00:00:00+00:00"}


def test_an_address_leaves_out_what_is_empty():
    assert [address(""), address("a b", cursor="x")] == ["/jobs", "/jobs?s=a+b&cursor=x"]
