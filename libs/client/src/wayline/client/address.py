"""The gateway's address, and the API key for it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from wayline.client.errors import WrongVariable

DEFAULT_URL = "http://127.0.0.1:8080"
MACHINE_KEY = "machine-key"
"""In `credentials/` of a data directory: the key that is sent where no other is set."""


@dataclass(frozen=True)
class Address:
    """The gateway's address, and the API key for it."""

    url: str
    key: str | None = None

    @classmethod
    def from_environment(cls) -> Self:
        """Read the address from the variables, else take that of the `wayline up` that runs in this directory."""
        port, url, running = os.environ.get("WAYLINE_HTTP_PORT"), os.environ.get("WAYLINE_URL"), _running_here()
        key = os.environ.get("WAYLINE_API_KEY") or None
        if port and not _is_port(port):
            raise WrongVariable("WAYLINE_HTTP_PORT", f"{port!r} is not a port")
        if url and not _is_http(url):
            raise WrongVariable("WAYLINE_URL", f"{url!r} is not of the form http://host:port")
        if key and not (key.isascii() and key.isprintable()):
            raise WrongVariable("WAYLINE_API_KEY", "this is not a key; one begins with wl_")
        address = (url or (f"http://127.0.0.1:{port}" if port else running or DEFAULT_URL)).rstrip("/")
        # The machine's own key goes to the gateway that runs from this data directory and to no other address.
        return cls(address, key or (_machine_key() if address == running else None))


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 65_536


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _data_dir() -> Path:
    return Path(os.environ.get("WAYLINE_DATA_DIR") or ".wayline")


def _machine_key() -> str | None:
    """Read the key that `wayline up` writes for users who may read its data directory."""
    try:
        return (_data_dir() / "credentials" / MACHINE_KEY).read_text().strip() or None
    except OSError:
        return None


def _running_here() -> str | None:
    """Read the address that a running `wayline up` has written in its data directory."""
    try:
        note = json.loads((_data_dir() / "up.json").read_text())
        # One that was killed leaves its note behind.
        with suppress(PermissionError):
            os.kill(note["pid"], 0)
        return note["gateway"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
