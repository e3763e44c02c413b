"""What tests copy is made once, whichever worker asks first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from wayline.testkit.made_once import make_once
from wayline.testkit.server_directory import SHARED

WITHIN_S = 30


def test_what_two_ask_for_at_once_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv(SHARED, str(tmp_path / "shared"))
    begun, go_on = Event(), Event()
    made: list[Path] = []

    def make(place: Path) -> None:
        begun.set()
        assert go_on.wait(WITHIN_S)
        made.append(place)
        (place / "whole").touch()

    with ThreadPoolExecutor(2) as workers:
        first = workers.submit(make_once, "thing", make, own=tmp_path / "first")
        assert begun.wait(WITHIN_S)
        second = workers.submit(make_once, "thing", make, own=tmp_path / "second")
        go_on.set()
        found = {first.result(WITHIN_S), second.result(WITHIN_S)}

    assert (len(made), found) == (1, {tmp_path / "shared" / "thing"})
    assert (tmp_path / "shared" / "thing" / "whole").exists()


def test_what_was_half_made_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(SHARED, raising=False)

    def fail(place: Path) -> None:
        (place / "half").touch()
        raise OSError

    with pytest.raises(OSError):
        make_once("thing", fail, own=tmp_path)
    made = make_once("thing", lambda place: (place / "whole").touch(), own=tmp_path)

    assert [path.name for path in made.iterdir()] == ["whole"]
