"""Which files of a folder are uploaded, and what they are called; pages of the web are named alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from wayline.client import ApiError, Client, File, add_urls, find_files


def test_a_folder_gives_its_readable_files_and_none_that_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    texts = (
        "a.md",
        "deep/b.PDF",
        "c.yaml",
        "main.rs",
        "schema.sql",
        "Booking.com",
        "LICENSE",
        ".git/g.md",
        "deep/.h.md",
    )
    for name in texts:
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("täxt")
    (tmp_path / "docs" / "wide.log").write_bytes("text".encode("utf-16"))
    (tmp_path / "docs" / "cut").write_bytes(b"x" * 8_191 + "ä".encode())
    monkeypatch.chdir(tmp_path)

    found = find_files([Path("docs")])

    assert found.skipped == []
    assert {file.name for file in found.files} == {
        "docs/a.md",
        "docs/deep/b.PDF",
        "docs/c.yaml",
        "docs/main.rs",
        "docs/schema.sql",
        "docs/Booking.com",
        "docs/LICENSE",
        "docs/wide.log",
        "docs/cut",
    }


def test_unsearchable_files_of_a_folder_are_skipped_with_the_reason(tmp_path: Path):
    (tmp_path / "photo.jpeg").write_bytes(b"\xff\xd8\xff\xe0 and so on")
    (tmp_path / "program").write_bytes(b"\x7fELF\x00\x00\xff")
    (tmp_path / "nothing.txt").write_bytes(b"")

    found = find_files([tmp_path])

    assert found.files == []
    assert [(one.name.rpartition("/")[2], one.reason.split(",")[0]) for one in found.skipped] == [
        ("nothing.txt", "it is empty"),
        ("photo.jpeg", "an image"),
        ("program", "binary data of no kind that is read"),
    ]


def test_a_file_named_by_itself_is_uploaded_whatever_it_is(tmp_path: Path):
    (tmp_path / "photo.jpeg").write_bytes(b"\xff\xd8\xff\xe0 and so on")

    assert [file.path for file in find_files([tmp_path / "photo.jpeg"]).files] == [tmp_path / "photo.jpeg"]


def test_a_file_keeps_its_relative_path_as_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("text")
    monkeypatch.chdir(tmp_path / "notes")

    given = [Path("a.md"), Path("../notes/a.md"), tmp_path / "notes" / "a.md", Path()]

    assert [file.name for file in find_files(given).files] == ["a.md", "a.md", "a.md", "notes/a.md"]


def test_files_of_one_name_in_two_folders_are_two_documents():
    one, other = File(Path("x/README.md"), "x/README.md"), File(Path("y/README.md"), "y/README.md")

    assert one.document_id != other.document_id


def test_of_a_folder_only_what_is_wanted_is_found(tmp_path: Path):
    for name in ("a.md", "b.docx", "drafts/c.md", "docs/d.md", "docs/e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("words")

    found = find_files([tmp_path], include=["*.md", "docs/*"], exclude=["drafts", "*.txt"])

    assert [file.path.relative_to(tmp_path).as_posix() for file in found.files] == ["a.md", "docs/d.md"]


class SlowGateway:
    """Answers as a gateway does that has not fetched the page yet when it is first asked."""

    def __init__(self) -> None:
        self.posted: list[Any] = []

    async def post(self, path: str, body: Any, *, params: Any) -> dict[str, Any]:
        self.posted.append((path, body))
        if "bad" in body["url"]:
            raise ApiError("no such address", status=422)
        return {"document_id": "d1", "status": "queued"}

    async def get(self, path: str) -> dict[str, Any]:
        return {"document_id": path.rpartition("/")[2], "status": "ready"}


async def test_addresses_are_sent_and_waited_for():
    gateway, told = SlowGateway(), list[str]()
    urls = ["https://sea.example", "https://bad.example"]

    ended = await add_urls(cast("Client", gateway), urls, done=lambda url, _: told.append(url), trust="trusted")

    assert [one["status"] for one in ended] == ["ready", "failed"]
    assert gateway.posted[0] == ("/v1/documents", {"url": "https://sea.example", "trust": "trusted"})
    assert sorted(told) == sorted(urls)
