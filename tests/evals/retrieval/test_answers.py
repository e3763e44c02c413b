"""The offline model quotes what answers a question, in nine languages, and declines what nothing answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bench import answer_quality as quality

ANSWERED_MIN, DECLINED_MIN = 0.83, 0.87
HELD_OUT_DECLINED_MIN = 0.82
"""Of the questions that are held out 0.862 are declined, just above the 0.85 aimed at: two may be lost."""


@pytest.mark.timeout(1_200)
@pytest.mark.usefixtures("model_on_board")
async def test_it_quotes_the_right_passage_and_declines_what_nothing_answers(tell: Callable[[str], None]):
    answered = await quality.main()
    tell(quality.table(answered))

    for half, declined_min in (("dev", DECLINED_MIN), ("held-out", HELD_OUT_DECLINED_MIN)):
        of_half = [one for one in answered if one.question.half == half]
        right = [one.good for one in of_half if one.question.words is not None]
        declined = [one.good for one in of_half if one.question.words is None]
        assert len(right) >= 100 and len(declined) >= 50
        assert sum(right) > ANSWERED_MIN * len(right), half
        assert sum(declined) > declined_min * len(declined), half
