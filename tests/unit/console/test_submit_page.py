"""The form of a new job: files that were uploaded once stay with it, and nothing else is taken for one."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime

import pytest
from starlette.datastructures import FormData

from wayline.console.pages.frame import Frame
from wayline.console.pages.job_files import GivenFile, read_back
from wayline.console.pages.submit import TEMPLATE, Draft, Submit
from wayline.console.render.environment import Templates

ME = {"tenant": "acme", "name": "ann", "scopes": ["read", "write"], "open": False, "version": "1"}
FRAME = Frame("New job", "/jobs", ME, "token", "system", "/jobs/new", now=datetime(2026, 5, 1, tzinfo=UTC))
FILE = GivenFile('"><b>\u202ecat.png', "image", "given_1", "0" * 64)


def test_an_uploaded_file_stands_in_the_form_and_comes_back():
    page = Submit(Draft(agent="a", input="What is this?", files=[FILE]), ["a"])
    shown = Templates().render(TEMPLATE, page=page, frame=FRAME, document_max_bytes=1_000_000).decode()
    found = re.search(r'name="given" value="([^"]*)" checked', shown)

    assert found and read_back(FormData([("given", html.unescape(found[1]))])) == [FILE]
    assert "<b>" not in shown and 'enctype="multipart/form-data"' in shown


def test_files_stand_before_the_text():
    body = Draft(agent="a", input="What is this?", files=[FILE]).body()

    part = {"type": "image", "document_id": "given_1", "sha256": "0" * 64}
    assert body["input"] == [part, {"type": "text", "text": "What is this?"}]
    assert Draft(agent="a", input="hi").body()["input"] == "hi"


@pytest.mark.parametrize(
    "value", ["", "{", "[]", "{}", json.dumps({"name": 1}), json.dumps({**FILE.part, "name": 1}), "[" * 9_000]
)
def test_what_is_no_file_is_left_out(value: str):
    assert read_back(FormData([("given", value)])) == []


def test_a_part_of_another_kind_is_left_out():
    assert read_back(FormData([("given", json.dumps({**FILE.part, "name": "x", "type": "text"}))])) == []
