"""Claim check: the largest fields of a message move to the object store until what is left is small enough."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson
from nats import errors as nats_errors
from nats.js.errors import APIError, NotFoundError

from wayline.chassis.claim_check.payloads import Payloads
from wayline.chassis.claim_check.stored_bytes import StoredBytes
from wayline.contracts.errors import Bug, Full, InvalidMessage, Unavailable

MESSAGE_MAX = 256 * 1024
"""Bytes of an encoded message; the bus itself takes 1 MiB."""

FETCH_TIMEOUT_S = 60.0
"""For one object: the content of one that is dropped while it is read never comes, and no error says so."""
STREAM_FULL = 10077

CLIENT_CLAIMS_MAX = 64
"""References in one message that a client may have published."""
CLIENT_UNFOLDED_MAX = 16 * 1024 * 1024
"""Bytes that such a message may take from the object store."""

CLAIM = "$claim"
"""The key of the reference that replaces a moved field; a sender's own key of that name travels with one more `$`."""


Reference = dict[str, Any]
"""What stands in a message for a field that was moved."""


@dataclass(frozen=True, slots=True)
class MovedField:
    """The JSON text of a field's value that is never whole in memory."""

    sha256: str
    size: int
    pieces: Callable[[], AsyncIterator[bytes]]
    """Yields it from its beginning, in pieces of `payloads.CHUNK_BYTES` at most."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a message may take from the object store."""

    claims: int
    unfolded_bytes: int


CLIENT_BOUNDS = Bounds(CLIENT_CLAIMS_MAX, CLIENT_UNFOLDED_MAX)


class PayloadMissing(Unavailable):
    """A field that a message moved to the object store is not there: lost, expired, or never stored."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "the object store",
            detail=f"no object {name!r}, or no longer (payloads are kept 30 days, large replies a minute)",
        )


class PayloadChanged(Bug):
    """An object is not what was stored under its name, which is its hash: it was overwritten."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the payload {name!r} is not what was stored under its name")


class Claims:
    """Moves large fields out of encoded messages and back in; objects are named `<tenant>/<owner>/<sha256>`."""

    def __init__(
        self, payloads: Payloads, *, also_read: Payloads | None = None, stored: StoredBytes | None = None
    ) -> None:
        """Move fields into `payloads`, and count what is stored for each tenant in `stored`.

        `also_read`: where older versions stored such objects; they are still found there until they expire.
        """
        self._payloads = payloads
        self._stored = stored
        self.require_room: Callable[[str, int], Awaitable[None]] | None = None
        """Called with the name and the bytes of an object before it is stored; raises where it must not be."""
        self._read_from = (payloads,) if also_read is None else (payloads, also_read)

    async def check_in(self, body: bytes, owner: str, *, most: int = MESSAGE_MAX) -> tuple[bytes, bool]:
        """Shrink a JSON body to `most` bytes; return it, and whether anything was moved.

        Raises Full when the object store is full, Unavailable when it does not answer, and what `require_room`
        raises.
        """
        if len(body) <= most:
            return body, False
        value = _marked(orjson.loads(body))
        while len(body) > most:
            holder, key = _largest(value)
            data = orjson.dumps(holder[key])
            name = await self.put(owner, data)
            holder[key] = {CLAIM: name, "bytes": len(data)}
            body = orjson.dumps(value)
        return body, True

    async def check_out(self, body: bytes, *, within: str = "", bounds: Bounds | None = None) -> bytes:
        """Put every claimed field back; each name must begin with `within`.

        Bounds are checked before anything is fetched. Raises InvalidMessage when they are exceeded or when a name is
        not allowed, PayloadMissing when an object is not there, Unavailable when the object store does not answer.
        """
        try:
            value = orjson.loads(body)
        except ValueError as error:
            raise _invalid(str(error)) from None
        unfolding = _Unfolding(within, bounds)
        await self._admit(value, unfolding)
        return orjson.dumps(await self._filled(value, unfolding))

    async def put(self, owner: str, data: bytes) -> str:
        """Store bytes under the hash of their content, and return the object's name. Raises Full, Unavailable."""
        name = f"{owner}/{sha256(data).hexdigest()}"
        await self._keep(name, len(data), lambda: self._payloads.put(name, data))
        return name

    async def put_field(self, owner: str, field: MovedField) -> Reference:
        """Store the encoded value of a field piece by piece; return what stands for it in its message.

        Raises Full, Unavailable, and what `require_room` raises.
        """
        name = f"{owner}/{field.sha256}"
        await self._keep(name, field.size, lambda: self._payloads.put_pieces(name, field.pieces()))
        return {CLAIM: name, "bytes": field.size}

    async def get(self, name: str, *, within: str) -> bytes:
        """Return the bytes of an object, whose name must begin with `within`.

        Raises InvalidMessage, PayloadMissing where it is not there, Unavailable.
        """
        _Unfolding(within, None).name([name])
        return await self._fetch(name)

    async def names_of(self, tenant: str, owners: Collection[str]) -> list[str]:
        """Return the names of all objects of a tenant that belong to these owners."""
        if not owners:
            return []
        prefixes = {f"{tenant}/{owner}" for owner in owners}
        return [name async for name in self._payloads.names() if name.rpartition("/")[0] in prefixes]

    async def drop(self, names: Iterable[str]) -> None:
        """Delete objects before they expire; missing ones are ignored."""
        for name in names:
            with suppress(NotFoundError):
                await self._payloads.delete(name)

    async def _admit(self, value: Any, unfolding: _Unfolding) -> None:
        """Check every name in a value, and the total size of the named objects."""
        names = _named(value)
        unfolding.name(names)
        if unfolding.bounds is None:
            return
        for name, times in Counter(names).items():
            unfolding.take(times * await self._size(name))

    async def _filled(self, value: Any, unfolding: _Unfolding) -> Any:
        if isinstance(value, list):
            return [await self._filled(item, unfolding) for item in value]
        if not isinstance(value, dict):
            return value
        if CLAIM not in value:
            return {_its_own(key): await self._filled(item, unfolding) for key, item in value.items()}
        moved = orjson.loads(await self._fetch(value[CLAIM]))
        await self._admit(moved, unfolding)
        return await self._filled(moved, unfolding)

    async def _size(self, name: str) -> int:
        for payloads in self._read_from:
            with suppress(NotFoundError), _answering():
                return await payloads.size(name)
        raise PayloadMissing(name)

    async def _keep(self, name: str, size: int, put: Callable[[], Awaitable[None]]) -> None:
        # The name is the content's hash: an object that is there already is the same object.
        try:
            with _answering():
                if await self._payloads.has(name):
                    return
            if self.require_room is not None:
                await self.require_room(name, size)
            with _answering():
                await put()
        except NotFoundError:
            raise Unavailable("the object store", detail="it is not declared: run `wayline migrate`") from None
        tenant = name.partition("/")[0]
        if self._stored is not None and tenant != "-":
            self._stored.note(tenant, size)

    async def _fetch(self, name: str) -> bytes:
        data = await self._get(name)
        if sha256(data).hexdigest() != name.rsplit("/", 1)[-1]:
            raise PayloadChanged(name)
        return data

    async def _get(self, name: str) -> bytes:
        for payloads in self._read_from:
            with suppress(NotFoundError), _answering():
                async with asyncio.timeout(FETCH_TIMEOUT_S):
                    return await payloads.get(name)
        raise PayloadMissing(name)


class _Unfolding:
    """Counts what one message takes from the object store."""

    def __init__(self, within: str, bounds: Bounds | None) -> None:
        self._within = within
        self.bounds = bounds
        self._claims = 0
        self._bytes = 0

    def name(self, names: list[Any]) -> None:
        """Count names. Raises InvalidMessage when one is outside `within`, or when there are too many."""
        self._claims += len(names)
        if self.bounds is not None and self._claims > self.bounds.claims:
            raise _invalid(f"it refers to more than {self.bounds.claims} objects")
        for name in names:
            if not isinstance(name, str):
                raise _invalid(f"{name!r} names no object")
            if not name.startswith(self._within):
                raise _invalid(f"it refers to {name!r}, which is not within {self._within!r}")

    def take(self, size: int) -> None:
        """Count bytes. Raises InvalidMessage when there are too many."""
        self._bytes += size
        if self.bounds is not None and self._bytes > self.bounds.unfolded_bytes:
            raise _invalid(f"it refers to more than {self.bounds.unfolded_bytes} bytes")


@contextmanager
def _answering() -> Iterator[None]:
    """Translate the object store's errors into ours, except NotFoundError."""
    try:
        yield
    except NotFoundError:
        raise
    except (TimeoutError, nats_errors.Error) as error:
        if isinstance(error, APIError) and error.err_code == STREAM_FULL:
            raise Full("the object store") from error
        raise Unavailable("the object store", detail=type(error).__name__) from error


def _invalid(reason: str) -> InvalidMessage:
    return InvalidMessage(schema="message with claims", reason=reason)


def _marked(value: Any) -> Any:
    """Return a value whose own `$claim` keys are escaped with one more `$`."""
    if isinstance(value, dict):
        return {f"${key}" if _looks_ours(key) else key: _marked(item) for key, item in value.items()}
    return [_marked(item) for item in value] if isinstance(value, list) else value


def _its_own(key: str) -> str:
    return key[1:] if _looks_ours(key) else key


def _looks_ours(key: str) -> bool:
    return key.endswith(CLAIM) and not key.removesuffix(CLAIM).strip("$")


def claimed(body: bytes) -> list[str]:
    """Return the names of the objects that an encoded message refers to, not those that the objects refer to."""
    return _named(orjson.loads(body))


def claimed_bytes(body: bytes) -> dict[str, int]:
    """Return the objects that an encoded message refers to, with their sizes as the message gives them."""
    return {node[CLAIM]: node["bytes"] for node in _references(orjson.loads(body))}


def _named(value: Any) -> list[Any]:
    return [node[CLAIM] for node in _references(value)]


def _references(value: Any) -> list[dict[str, Any]]:
    found, left = [], [value]
    while left:
        node = left.pop()
        if isinstance(node, dict) and CLAIM in node:
            found.append(node)
        elif isinstance(node, (dict, list)):
            left.extend(node.values() if isinstance(node, dict) else node)
    return found


def _largest(value: Any) -> tuple[Any, Any]:
    """Return the holder and the key of the largest field, going down while one child holds at least half of it."""
    holder, key, node = None, None, value
    while True:
        children: list[tuple[Any, Any]]
        if isinstance(node, dict) and CLAIM not in node:
            children = list(node.items())
        elif isinstance(node, list):
            children = list(enumerate(node))
        else:
            children = []
        if not children:
            break
        size, child_key = max((len(orjson.dumps(child)), name) for name, child in children)
        if holder is not None and size * 2 < len(orjson.dumps(node)):
            break
        holder, key, node = node, child_key, node[child_key]
    if holder is None or (isinstance(node, dict) and CLAIM in node):
        raise Bug("a message is too large although all its large fields were moved out")
    return holder, key
