"""The form of a new job: files that were uploaded once stay with it, and nothing else is taken for one."""

from __future__ import annotations

import asyncio
import html
import json
import re
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, cast

import pytest
from starlette.datastructures import FormData, UploadFile

from wayline.client import ApiError
from wayline.client.client import Client
from wayline.client.uploads import AT_ONCE
from wayline.console.pages.frame import Frame
from wayline.console.pages.job_files import GivenFile, read_back, upload_all
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


async def test_files_go_up_side_by_side_and_each_refusal_is_told():
    sending, most, all_begun = 0, 0, asyncio.Event()

    class Gateway:
        async def post(self, path: str, fields: dict[str, Any], **_: Any) -> dict[str, Any]:
            nonlocal sending, most
            sending += 1
            most = max(most, sending)
            if most == AT_ONCE:
                all_begun.set()
            async with asyncio.timeout(10):
                await all_begun.wait()
            sending -= 1
            if fields["name"] in ("2", "5"):
                raise ApiError("it is empty", code="document_unusable", status=422)
            return {"document_id": fields["document_id"], "status": "ready", "sha256": "0" * 64, "width": None}

    files = [UploadFile(BytesIO(b"words"), filename=str(number)) for number in range(AT_ONCE * 2)]

    given, refused = await upload_all(cast(Client, Gateway()), files)

    assert most == AT_ONCE
    assert [one.name for one in given] == ["0", "1", "3", "4", "6", "7"]
    assert [str(one) for one in refused] == ["2: it is empty", "5: it is empty"]
