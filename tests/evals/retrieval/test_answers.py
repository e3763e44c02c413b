"""The offline model quotes what answers a question, in nine languages, and declines what nothing answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bench import answer_quality as quality

ANSWERED_MIN, DECLINED_MIN = 0.8, 0.85


@pytest.mark.timeout(1_200)
@pytest.mark.usefixtures("model_on_board")
async def test_it_quotes_the_right_passage_and_declines_what_nothing_answers(tell: Callable[[str], None]):
    answered = await quality.main()
    tell(quality.table(answered))
    right = [one.good for one in answered if one.question.words is not None]
    declined = [one.good for one in answered if one.question.words is None]

    assert len(right) >= 100
    assert len(declined) >= 50
    assert sum(right) > ANSWERED_MIN * len(right)
    assert sum(declined) > DECLINED_MIN * len(declined)
