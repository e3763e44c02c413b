"""Take scripts of the console and its tests from npm, by exact versions; `--check` compares hashes of what is kept."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from base64 import b64encode
from hashlib import sha256, sha512
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("vendored.json")


def problems() -> list[str]:
    """Return what is kept and is not what the list says, and what is kept and not listed."""
    packages = json.loads(LIST.read_text())
    listed = {
        f"{package['kept_in']}/{file['kept_as']}": file["sha256"] for package in packages for file in package["files"]
    }
    folders = {ROOT / package["kept_in"] for package in packages}
    found = {
        path.relative_to(ROOT).as_posix(): sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in folder.iterdir()
    }
    return sorted({f"{name} differs from tools/vendored.json" for name, _ in listed.items() ^ found.items()})


def take(package: dict[str, Any]) -> None:
    """Pack a package as npm serves it, and keep its listed files. Ends the program where a hash differs."""
    with tempfile.TemporaryDirectory() as directory:
        name = f"{package['package']}@{package['version']}"
        packed = subprocess.run(
            ["npm", "pack", "--silent", name], cwd=directory, check=True, capture_output=True, text=True
        )
        content = Path(directory, packed.stdout.split()[-1]).read_bytes()
    if f"sha512-{b64encode(sha512(content).digest()).decode()}" != package["integrity"]:
        sys.exit(f"{name} is not the package whose hash is in tools/vendored.json")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for file in package["files"]:
            member = archive.extractfile(f"package/{file['in_package']}")
            assert member is not None
            (ROOT / package["kept_in"] / file["kept_as"]).write_bytes(member.read())


def main() -> None:
    """Take every package, or only check."""
    if "--check" not in sys.argv:
        for package in json.loads(LIST.read_text()):
            take(package)
    if found := problems():
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
