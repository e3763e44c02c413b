"""When a stream is full, by what it holds and how fast that came."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from wayline.standalone.capacity import StreamUse, tenant_of
from wayline.standalone.settings import Settings
from wayline.standalone.terminal.capacity_views import size

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
GIB = 1024**3
RULES = Path(__file__).parents[3] / "deploy" / "prometheus" / "rules" / "wayline.yml"


def held(**fields: Any) -> StreamUse:
    usual = {"bytes": GIB, "max_bytes": 8 * GIB, "messages": 1_000, "max_messages": None, "max_age_s": 30 * 86_400}
    return StreamUse(**{"name": "EVENTS", "oldest": NOW - timedelta(days=2), **usual, **fields})


def test_a_log_is_full_when_its_growth_reaches_the_limit():
    # Half a GiB a day: seven more take fourteen days, and nothing goes before thirty.
    assert held().full_in(NOW) == timedelta(days=14)


def test_a_log_whose_oldest_go_before_the_limit_is_never_full():
    assert held(bytes=GIB // 4).full_in(NOW) is None
    assert held(max_age_s=7 * 86_400).full_in(NOW) is None


@pytest.mark.parametrize(
    "fields",
    [{"name": "SUBMIT"}, {"oldest": None}, {"max_bytes": None}, {"oldest": NOW}, {"bytes": 1, "max_age_s": None}],
    ids=["what waits", "empty", "no limit", "a second old", "in centuries"],
)
def test_nobody_knows_when_other_streams_are_full(fields: dict[str, Any]):
    assert held(**fields).full_in(NOW) is None


def test_how_full_it_is_goes_by_the_nearest_limit():
    assert held().full == 1 / 8
    assert held(max_messages=2_000).full == 1 / 2
    assert held(max_bytes=None).full == 0


def test_every_stream_that_an_alert_names_can_get_more_room():
    names = "|".join(re.findall(r'full_ratio\{stream_name=~"([^"]+)"', RULES.read_text())).split("|")

    chosen = Settings(stream_max_bytes=dict.fromkeys(names, "20GiB")).limits.max_bytes  # type: ignore[arg-type]

    assert set(chosen.values()) == {20 * GIB} and {"EVENTS", "PAYLOADS", "UPLOADS"} <= chosen.keys()


def test_an_older_dead_letter_is_of_no_known_tenant():
    assert tenant_of("DEAD", "dead.SUBMIT.router.acme") == "acme"
    assert tenant_of("DEAD", "dead.SUBMIT.router") == ""


def test_a_full_stream_is_full_now():
    assert held(bytes=9 * GIB).full_in(NOW) == timedelta(0)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (150 * 1024**2, "150 MiB"),
        (8 * GIB, "8.0 GiB"),
        (2**60, "1048576 TiB"),
    ],
)
def test_sizes_are_shown_in_the_unit_that_fits(count: int, text: str):
    assert size(count) == text
