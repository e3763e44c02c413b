"""What a tenant's program sees of the machine: a home and a temporary directory of its own."""

from __future__ import annotations

import os
from pathlib import Path

CACHES = {"npm_config_cache": ".npm", "UV_CACHE_DIR": ".cache/uv", "UV_PYTHON_INSTALL_DIR": ".local/share/uv/python"}
"""Where npx and uvx keep what they have downloaded, below our own home: else each start would download it again."""


def program_environment(scratch: str) -> dict[str, str]:
    """Return the variables of a program whose files are in a directory that is deleted once the program is left."""
    temporary = Path(scratch, "tmp")
    temporary.mkdir(exist_ok=True)
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": scratch, "TMPDIR": str(temporary), **_caches(os.environ.get("HOME"))}


def _caches(home: str | None) -> dict[str, str]:
    below = {} if home is None else {name: str(Path(home, place)) for name, place in CACHES.items()}
    return {name: os.environ.get(name, place) for name, place in below.items()}
