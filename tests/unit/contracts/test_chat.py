"""What travels with a user's words: the time and the style, and neither in them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from wayline.contracts.chat import TextPart, UserMessage

PARTS = (TextPart(text="Is it late?"),)
SENT = datetime(2026, 11, 22, 1, 5, tzinfo=timezone(timedelta(hours=3)))


@pytest.mark.parametrize(
    ("message", "asides"),
    [
        (UserMessage(parts=PARTS), ()),
        (UserMessage(parts=PARTS, style="briefly"), ("Answer in this style: briefly",)),
        (UserMessage(parts=PARTS, sent_at=SENT), ("Sent on 2026-11-21, a Saturday, at 22:05 UTC.",)),
        (
            UserMessage(parts=PARTS, sent_at=SENT, style="briefly"),
            ("Sent on 2026-11-21, a Saturday, at 22:05 UTC.", "Answer in this style: briefly"),
        ),
    ],
)
def test_the_time_is_given_in_utc_before_the_style(message, asides):
    assert message.asides == asides


def test_the_users_own_words_stay_as_they_are():
    assert UserMessage(parts=PARTS, sent_at=datetime.now(UTC)).parts == PARTS
