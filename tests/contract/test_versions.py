"""One version everywhere, and a changelog that tells of each."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
MEMBERS = [ROOT, *sorted((ROOT / "libs").iterdir()), *sorted((ROOT / "services").iterdir())]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
HEADINGS = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
RELEASE = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (20\d\d-\d\d-\d\d)")
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Upgrading"]


def versions() -> dict[str, str]:
    found = {}
    for member in MEMBERS:
        if (member / "pyproject.toml").exists():
            found[member.name] = tomllib.loads((member / "pyproject.toml").read_text())["project"]["version"]
    return found


def test_every_member_and_image_has_the_same_version():
    known = versions()
    images = yaml.safe_load((ROOT / "deploy/kubernetes/base/kustomization.yaml").read_text())["images"]
    composed = re.search(r"image: wayline:(\S+)", (ROOT / "docker-compose.yml").read_text())

    assert composed is not None
    tags = [composed[1], *(image["newTag"] for image in images if image["newName"] == "wayline")]
    assert {*known.values(), *tags} == {known[ROOT.name]}


def test_the_changelog_names_unreleased_changes_first_then_each_release():
    assert HEADINGS[0] == "[Unreleased]"
    releases = [RELEASE.fullmatch(heading) for heading in HEADINGS[1:]]
    assert all(releases), HEADINGS
    numbers = [tuple(int(part) for part in found.groups()[:3]) for found in releases if found]
    assert numbers == sorted(set(numbers), reverse=True)
    dates = [found[4] for found in releases if found]
    assert dates == sorted(dates, reverse=True)


def test_the_newest_release_is_the_version_or_comes_before_it():
    version = versions()[ROOT.name]
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)(\.dev\d+)?", version)
    assert found is not None, f"{version} is no semantic version"
    newest = RELEASE.fullmatch(HEADINGS[1])
    assert newest is not None
    here, released = [tuple(map(int, one.groups()[:3])) for one in (found, newest)]

    assert released < here if found[4] else released == here


def test_each_release_has_its_fixtures_and_known_kinds_of_changes():
    releases = [found for heading in HEADINGS[1:] if (found := RELEASE.fullmatch(heading))]
    kept = {path.parent.name for path in (ROOT / "tests/releases").glob("*/migrations.txt")}

    assert kept <= {".".join(found.groups()[:3]) for found in releases}
    assert ".".join(releases[0].groups()[:3]) in kept, "make release-fixtures"
    assert set(re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE)) <= set(KINDS)
    for part in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        assert "### Upgrading" in part, part.splitlines()[0]
