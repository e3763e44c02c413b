"""What the doctor says of the program that reads scanned pages, and of variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from wayline.standalone.doctor.machine import OCR_LANGUAGES, OCR_PROGRAM, service_settings, text_recognition


@pytest.mark.parametrize(
    ("languages", "is_there", "finding"),
    [
        ("", False, ("ok", f"off: scanned PDFs are not searchable (no {OCR_PROGRAM} here)")),
        ("", True, ("ok", "off: scanned PDFs are not searchable (there)")),
        ("eng+deu", False, ("problem", f"{OCR_LANGUAGES} is 'eng+deu' and there is no {OCR_PROGRAM} on the PATH")),
        ("eng+deu", True, ("ok", "there reads scanned PDFs in eng+deu")),
    ],
)
async def test_scans_that_nobody_can_read_are_a_problem(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, languages: str, *, is_there: bool, finding: tuple[str, str]
):
    program = tmp_path / OCR_PROGRAM
    if is_there:
        program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(OCR_LANGUAGES, languages)

    [found] = [one async for one in text_recognition()]

    text = found.text.replace(f"{program} is there", "there").replace(str(program), "there")
    assert (found.state, text) == finding
    assert bool(found.todo) == (found.state == "problem")


async def test_a_misspelled_variable_is_named_with_the_setting_that_it_resembles(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAYLINE_GATEWAY_STREAM_MAX", "7")
    monkeypatch.setenv("WAYLINE_TOOL_REGISTRY_XYZ", "1")

    found = [one async for one in service_settings()]

    assert [(one.state, one.text) for one in found] == [
        ("warning", "WAYLINE_GATEWAY_STREAM_MAX is no setting of gateway; did you mean WAYLINE_GATEWAY_STREAMS_MAX?"),
        ("warning", "WAYLINE_TOOL_REGISTRY_XYZ is no setting of tool-registry"),
    ]


async def test_variables_that_are_all_settings_are_well(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAYLINE_GATEWAY_STREAMS_MAX", "7")

    assert [one.state async for one in service_settings()] == ["ok"]
