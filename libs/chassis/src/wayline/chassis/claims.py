"""Claim check: the largest fields of a message move to the object store until what is left is small enough."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Any

import orjson
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from nats.js.object_store import ObjectStore

from wayline.chassis.topology import PAYLOADS
from wayline.contracts.errors import Bug, Unavailable

MESSAGE_MAX = 256 * 1024
"""Bytes of an encoded message; the bus itself takes 1 MiB."""

CLAIM = "$claim"


class Claims:
    """Moves large fields out of encoded messages and back in; objects are named `<tenant>/<owner>/<sha256>`."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js
        self._store: ObjectStore | None = None

    async def check_in(self, body: bytes, owner: str) -> tuple[bytes, bool]:
        """Shrink a JSON body to MESSAGE_MAX; the flag says whether anything was moved."""
        if len(body) <= MESSAGE_MAX:
            return body, False
        value = orjson.loads(body)
        store = await self._objects()
        while len(body) > MESSAGE_MAX:
            holder, key = _largest(value)
            data = orjson.dumps(holder[key])
            name = f"{owner}/{sha256(data).hexdigest()}"
            # The name is the content's hash: an object that is there already is the same object.
            try:
                await store.get_info(name)
            except NotFoundError:
                await store.put(name, data)
            holder[key] = {CLAIM: name, "bytes": len(data)}
            body = orjson.dumps(value)
        return body, True

    async def check_out(self, body: bytes) -> bytes:
        """Put every claimed field back. Raises Unavailable when the object store does not answer."""
        return orjson.dumps(await self._filled(orjson.loads(body)))

    async def drop(self, names: Iterable[str]) -> None:
        """Delete objects before their time; one that is gone already is no matter."""
        store = await self._objects()
        for name in names:
            with suppress(NotFoundError):
                await store.delete(name)

    async def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            if CLAIM in value:
                return await self._filled(orjson.loads(await self._fetch(value[CLAIM])))
            return {key: await self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [await self._filled(item) for item in value]
        return value

    async def _fetch(self, name: str) -> bytes:
        store = await self._objects()
        try:
            data = (await store.get(name)).data
        except NotFoundError:
            raise Unavailable("the object store", detail=f"no object {name!r} (payloads are kept 30 days)") from None
        if data is None or sha256(data).hexdigest() != name.rsplit("/", 1)[-1]:
            raise Bug(f"the payload {name!r} is not what was stored under its name")
        return data

    async def _objects(self) -> ObjectStore:
        if self._store is None:
            self._store = await self._js.object_store(PAYLOADS)
        return self._store


def claimed(body: bytes) -> list[str]:
    """The objects that an encoded message names; what those name in turn is not looked at."""
    found, left = [], [orjson.loads(body)]
    while left:
        node = left.pop()
        if isinstance(node, dict) and CLAIM in node:
            found.append(node[CLAIM])
        elif isinstance(node, (dict, list)):
            left.extend(node.values() if isinstance(node, dict) else node)
    return found


def _largest(value: Any) -> tuple[Any, Any]:
    """Where the most bytes hang together: down into the largest child until no child holds half of it."""
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
