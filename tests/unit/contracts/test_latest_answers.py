"""An answer that is JSON is kept whole in a user's newest result, or not at all; words are cut."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from wayline.contracts.jobs import JobView, RunResult, Status
from wayline.contracts.jobs.latest import JSON_MAX, OUTCOME_MAX


def outcome(answer: str) -> Any:
    job = JobView(
        job_id="j", agent="a", user_id="u", status=Status.COMPLETED, answer=answer, ended_at=datetime.now(UTC)
    )
    found = RunResult.of(job)
    assert found is not None
    return found.outcome


def test_a_long_json_answer_is_kept_whole():
    answer = json.dumps({"tasks": ["x" * 100] * 1_500})

    assert len(answer) > OUTCOME_MAX
    assert (outcome(answer).answer, outcome(answer).cut) == (answer, False)


@pytest.mark.parametrize("text", ["x" * 100_000, "{" + "x" * 100_000])
def test_long_words_are_cut_and_said_so(text: str):
    assert (outcome(text).answer, outcome(text).cut) == (text[:OUTCOME_MAX], True)


def test_json_beyond_the_most_is_left_out_and_not_broken():
    found = outcome(json.dumps(["x" * JSON_MAX]))

    assert (found.answer, found.cut) == (None, True)
