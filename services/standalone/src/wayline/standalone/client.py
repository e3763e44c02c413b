"""The gateway's HTTP API, as the command line uses it. Light on purpose: nothing of a server is imported here."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx2

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8080"
MACHINE_KEY = "machine-key"
"""In `credentials/` of a data directory: what the command line shows where no key is set."""
TIMEOUT_S = 70.0
"""Longer than the gateway's longest `?wait=`."""
SILENCE_MAX_S = 60.0
"""An event stream says something every 15 s, if only that it is alive."""
RECONNECTS_MAX = 20
RECONNECT_AFTER_S = 0.5


class ApiError(Exception):
    """The gateway refused, or nothing answers."""

    exit_code = 1

    def __init__(self, detail: str, *, code: str = "error", status: int | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status


class WrongVariable(ApiError):
    """A variable that says where the gateway is cannot be used."""

    exit_code = 2

    def __init__(self, variable: str, problem: str) -> None:
        super().__init__(f"{variable}: {problem}", code="wrong_setting")


class NotText(ApiError):
    """What is to be sent holds bytes that are no text."""

    exit_code = 2

    def __init__(self) -> None:
        super().__init__("an argument is not UTF-8 text: correct it, or send a file", code="not_text")


class NotReachable(ApiError):
    """Nothing answers at the address."""

    def __init__(self, *, url: str, cause: str) -> None:
        super().__init__(
            f"nothing answers at {url} ({cause}): start Wayline with `wayline up`, or set WAYLINE_URL to where it runs",
            code="not_reachable",
        )


@dataclass(frozen=True)
class Address:
    """Where the gateway is, and the key to it."""

    url: str
    key: str | None = None

    @classmethod
    def from_environment(cls) -> Self:
        """As the variables say, else of the `wayline up` that runs in this directory."""
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
    """Read the key that `wayline up` keeps for whoever may read its data directory."""
    try:
        return (_data_dir() / "credentials" / MACHINE_KEY).read_text().strip() or None
    except OSError:
        return None


def _running_here() -> str | None:
    """Where a `wayline up` has noted that it is; read without the classes of an installation, which load slowly."""
    note = _data_dir() / "up.json"
    try:
        said = json.loads(note.read_text())
        # One that was killed leaves its note behind.
        with suppress(PermissionError):
            os.kill(said["pid"], 0)
        return said["gateway"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Api:
    """A connected client; errors are ApiError with what the gateway says."""

    def __init__(self, address: Address) -> None:
        self.address = address
        headers = {"Authorization": f"Bearer {address.key}"} if address.key else {}
        # Nothing of the environment's proxies: the gateway is where the address says.
        self._http = httpx2.AsyncClient(base_url=address.url, headers=headers, timeout=TIMEOUT_S, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, **params: Any) -> Any:
        """Ask; parameters that are None are left out."""
        return await self._send(
            "GET", path, params={name: value for name, value in params.items() if value is not None}
        )

    async def log(self, job_id: str) -> list[dict[str, Any]]:
        """A job's events so far."""
        return await self._send("GET", f"/v1/jobs/{job_id}/events", headers={"Accept": "application/json"})

    async def post(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        file: tuple[str, bytes] | None = None,
    ) -> Any:
        """Send JSON, or a file with the body as its form's fields."""
        if file is not None:
            return await self._send("POST", path, files={"file": file}, data=body, params=params)
        return await self._send("POST", path, json=body, headers=headers, params=params)

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        return await self._send("PUT", path, json=body)

    async def delete(self, path: str) -> Any:
        return await self._send("DELETE", path)

    async def events(self, job_id: str, after: int = 0) -> AsyncGenerator[dict[str, Any]]:
        """A job's events until its end, each once, over as many connections as it takes; deltas have no `seq`."""
        import asyncio

        last, failures = after, 0
        while True:
            try:
                async with aclosing(self._events_once(job_id, last)) as events:
                    async for event in events:
                        failures, last = 0, event.get("seq", last)
                        yield event
                        if event["type"] in ("job.completed", "job.failed", "job.cancelled"):
                            return
            except httpx2.TransportError as error:
                failures += 1
                if failures > RECONNECTS_MAX:
                    raise NotReachable(url=self.address.url, cause=_cause(error)) from None
            await asyncio.sleep(RECONNECT_AFTER_S)

    async def _events_once(self, job_id: str, after: int) -> AsyncGenerator[dict[str, Any]]:
        timeout = httpx2.Timeout(TIMEOUT_S, read=SILENCE_MAX_S)
        headers = {"Last-Event-ID": str(after)}
        async with self._http.sse(
            f"/v1/jobs/{job_id}/events", headers=headers, timeout=timeout, max_event_size=None
        ) as source:
            if source.response.status_code >= 400:
                await source.response.aread()
                raise _refused(source.response)
            async for sent in source:
                said: dict[str, Any] = json.loads(sent.data)
                yield {"type": sent.event, **said}

    async def _send(self, method: str, path: str, **how: Any) -> Any:
        try:
            response = await self._http.request(method, path, **how)
        except httpx2.TransportError as error:
            raise NotReachable(url=self.address.url, cause=_cause(error)) from None
        if not response.is_success:
            raise _refused(response)
        try:
            return response.json()
        except ValueError:
            raise _strange(response) from None


def _refused(response: httpx2.Response) -> ApiError:
    try:
        problem = response.json()
        return ApiError(problem["detail"], code=problem["code"], status=response.status_code)
    except (ValueError, KeyError, TypeError):
        return _strange(response)


def _strange(response: httpx2.Response) -> ApiError:
    return ApiError(
        f"{response.request.url} answered {response.status_code}, not as Wayline does: is WAYLINE_URL right?",
        status=response.status_code,
    )


def _cause(error: Exception) -> str:
    return str(error) or type(error).__name__


def talk(work: Callable[[Api], Awaitable[T]]) -> T:
    """Run a command's conversation with the gateway."""
    import asyncio

    async def conversation() -> T:
        async with Api(Address.from_environment()) as api:
            return await work(api)

    try:
        return asyncio.run(conversation())
    except UnicodeEncodeError:
        raise NotText from None
