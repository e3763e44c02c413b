"""Addresses to ingest are read from a file."""

from pathlib import Path

from wayline.standalone.commands.knowledge import _addresses


def test_a_file_of_addresses_has_one_on_each_line(tmp_path: Path):
    (tmp_path / "urls").write_text("# ours\nhttps://sea.example\n\n  https://moon.example\n")

    assert _addresses(tmp_path / "urls") == ["https://sea.example", "https://moon.example"]
    assert _addresses(None) == []
