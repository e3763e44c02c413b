"""What a page says that a job does is what the API's progress events say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.console.render.shown_progress import (
    MESSAGES,
    ShownProgress,
    progress_of,
    queue_words,
    told_progress,
    tool_state,
)
from wayline.contracts.jobs import QueuePlace
from wayline.contracts.observation import tool_state as told_state
from wayline.contracts.progress import Progress
from wayline.journal import ProgressReader, read_export
from wayline.journal.progress import MESSAGES as told_messages

from ..journal.test_progress import Story

GOLDEN = sorted((Path(__file__).parents[1] / "executor" / "replay" / "golden").glob("*.json*"))
WORDS = (
    *("memory", "remember", "save", "fetch", "page", "read", "search", "web", "google", "server__get", "url"),
    *("updateMemory", "webSearch", "lookup", "x", "_", "URL", "__"),
)


def told_after(progress: ShownProgress | None, made: list[Progress]) -> ShownProgress | None:
    """Return what is under way once the API has told of these."""
    for one in made:
        progress = told_progress(one.model_dump(mode="json"))
    return progress


@pytest.mark.parametrize("log", GOLDEN, ids=lambda path: path.stem)
def test_after_each_event_the_page_says_what_the_api_says(log: Path):
    reader, told, shown = ProgressReader(), None, []
    for event in read_export(orjson.loads(log.read_bytes())):
        told = told_after(told, reader.read(event))
        shown.append(event.model_dump(mode="json"))
        found = progress_of(shown)
        assert (found and (found.key, found.words)) == (told and (told.key, replace(told, message="").words)), (
            event.type
        )


def test_a_parked_job_goes_on_where_it_was():
    story = Story().model(1, "search_web")
    events = [event.model_dump(mode="json") for event in story.events]
    parked = [*events, {"type": "job.parked"}]

    assert progress_of(events) == ShownProgress("searching_web", 1, 4)
    assert progress_of(parked) is None
    assert progress_of([*parked, {"type": "job.resumed"}]) == ShownProgress("searching_web", 1, 4)


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map("_".join))
def test_a_tools_state_is_that_of_the_api(name: str):
    assert tool_state(name) == told_state(name)


def test_a_state_reads_as_a_step_of_many():
    place = QueuePlace(job_id="j", lane="batch", position=3, queued=12).model_dump(mode="json")

    assert ShownProgress("searching_web", 2, 5).words == "Step 2 of 5: Searching the web"
    assert ShownProgress("analyzing", of=5).words == "Reading the task"
    assert ShownProgress("executing_tools", 2, message="crawl: 3 of 9").words == "Step 2: crawl: 3 of 9"
    assert queue_words(place) == "Number 3 of 12 in the queue batch"


def test_each_state_has_the_words_of_the_api():
    assert told_messages == MESSAGES
