"""What a page says that a job does is what the API says."""

from __future__ import annotations

import pytest

from wayline.console.render.shown_progress import ShownProgress, queue_words, told_progress
from wayline.contracts.jobs import QueuePlace
from wayline.contracts.progress import Progress


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (
            Progress(state="searching_web", phase="started", iteration=2, of=5, message="Searching the web"),
            "Step 2 of 5: ",
        ),
        (Progress(state="analyzing", phase="started", of=5, message="Reading the task"), ""),
        (Progress(state="executing_tools", phase="running", iteration=2, message="crawl: 3 of 9"), "Step 2: "),
        (Progress(state="reasoning", phase="started", iteration=1), "Step 1: reasoning"),
    ],
)
def test_a_state_reads_as_a_step_of_many(progress: Progress, words: str):
    told = told_progress(progress.model_dump(mode="json"))

    assert told and told.words == words + progress.message
    assert told.key == f"{progress.iteration}/{progress.state}"


def test_a_job_without_progress_or_at_an_end_shows_none():
    ended = Progress(state="reasoning", phase="completed", iteration=1).model_dump(mode="json")

    assert told_progress(ended) is None and told_progress(None) is None


def test_a_queued_job_tells_its_place_where_it_is_known():
    place = QueuePlace(job_id="j", lane="batch", position=3, queued=12).model_dump(mode="json")

    assert queue_words(place) == "Number 3 of 12 in the queue batch"
    assert queue_words(None) == "Waiting for an executor to take it"
    assert ShownProgress("searching_web", 2, 5, "x").words == "Step 2 of 5: x"
