"""References to a tenant's secrets in a server's configuration: `${secret:NAME}` in `url`, `headers`, `args`, `env`.

What is stored and shown is the reference; the value stands in its place only where a connection is made.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from urllib.parse import quote, urlsplit

from pydantic import SecretStr

from wayline.contracts.errors import Reject
from wayline.contracts.server_config import HEADER_VALUE, REFERENCE, ServerConfig
from wayline.tool_registry.errors import NotBegun

BEGIN = "${secret:"
KEPT_IN_URL = "!$'()*,;:@"
"""Characters that mean nothing in a path or a value of a query, and stay as they are there."""
RANDOM_CHARS_MIN = 20
"""Of a part that looks like a secret: shorter ones are words, versions and numbers."""
RANDOM_BITS_MIN = 3.3
"""Of each of its characters, by how often each stands in it: those of words and dates hold less."""
PART = re.compile(r"[/?&=,;|\s]+")
NAMED_SECRET = re.compile(
    r"(?:^|[-_.])(?:token|api-?key|key|secret|passw(?:or)?d|passwd|pwd|credentials?|auth)$", re.IGNORECASE
)
OPTION = re.compile(r"-{1,2}([A-Za-z][A-Za-z0-9_.-]*)")
TODO = "store it with `wayline mcp secrets put NAME` and write ${secret:NAME} in its place"


def names_of(config: ServerConfig) -> frozenset[str]:
    """Return the names of the secrets that a configuration refers to."""
    return frozenset(name for text in _texts(config) for name in REFERENCE.findall(text))


def require_references(config: ServerConfig) -> None:
    """Refuse references that could not be resolved as they are meant. Raises Reject."""
    for text in _texts(config):
        if BEGIN in REFERENCE.sub("", text):
            raise _refused("a reference to a secret is `${secret:NAME}`: NAME has letters, digits, `_`, `-` and `.`")
    if config.oauth is not None and REFERENCE.search(config.url or ""):
        raise _refused("a server with `oauth` takes no secret in its `url`: its tokens are given for the whole of it")


def resolved(config: ServerConfig, values: Mapping[str, str]) -> ServerConfig:
    """Return a configuration with the values of secrets in place of references. Raises NotBegun."""
    if missing := sorted(names_of(config) - values.keys()):
        raise NotBegun(f"there is no secret {missing[0]!r}: `wayline mcp secrets put {missing[0]}` stores one")

    def put(text: str) -> str:
        return REFERENCE.sub(lambda found: values[found[1]], text)

    headers = {name: SecretStr(put(value.get_secret_value())) for name, value in config.headers.items()}
    for name, value in headers.items():
        if not HEADER_VALUE.fullmatch(value.get_secret_value()):
            raise NotBegun(f"the secret in the header {name!r} has a line end or a character that is not ASCII")
    return config.model_copy(
        update={
            "url": config.url and REFERENCE.sub(lambda found: _in_url(values[found[1]]), config.url),
            "headers": headers,
            "args": tuple(map(put, config.args)),
            "env": {name: SecretStr(put(value.get_secret_value())) for name, value in config.env.items()},
        }
    )


def spellings(values: Iterable[str]) -> frozenset[str]:
    """Return secrets as they are and as a URL has them."""
    return frozenset(text for value in values for text in (value, _in_url(value), quote(value, safe="")))


def is_shown(query: str) -> bool:
    """Return whether the query of a URL holds no secret itself, because every value in it is a reference."""
    return all(REFERENCE.fullmatch(part.partition("=")[2]) for part in query.split("&"))


def secrets_in_clear(config: ServerConfig) -> tuple[str, ...]:
    """Return what looks like a secret where readers see it, and what to do, without the secret."""
    found: list[str] = []
    if _holds_secret(urlsplit(config.url or "").path):
        found.append(f"the path of `url` looks as if it held a secret, and every key with `read` sees it: {TODO}")
    if any(map(_holds_secret, config.args)) or _follows_option(config.args):
        found.append(f"`args` look as if they held a secret, and every key with `read` sees them: {TODO}")
    return tuple(found)


def _texts(config: ServerConfig) -> list[str]:
    secrets = [*config.headers.values(), *config.env.values()]
    return [config.url or "", *config.args, *(secret.get_secret_value() for secret in secrets)]


def _refused(why: str) -> Reject:
    return Reject(why, code="wrong_reference", status=422)


def _in_url(value: str) -> str:
    return quote(value, safe=KEPT_IN_URL)


def _holds_secret(text: str) -> bool:
    parts = [part for part in PART.split(REFERENCE.sub("", text)) if part]
    assigned = re.findall(r"([A-Za-z][A-Za-z0-9_.-]*)=([^&;/\s]+)", REFERENCE.sub("", text))
    return any(map(_is_random, parts)) or any(NAMED_SECRET.search(name) for name, _ in assigned)


def _follows_option(args: Iterable[str]) -> bool:
    """Return whether a word follows an option that takes a secret, such as `--token`."""
    for option, value in pairwise(args):
        name = OPTION.fullmatch(option)
        if name and NAMED_SECRET.search(name[1]) and not value.startswith("-") and not REFERENCE.search(value):
            return True
    return False


def _is_random(part: str) -> bool:
    """Return whether a part of a text is long, mixes letters and digits, and repeats itself as little as a key does."""
    if len(part) < RANDOM_CHARS_MIN or not re.search("[0-9]", part) or not re.search("[A-Za-z]", part):
        return False
    # A name of several words, such as a package with its version.
    if all(len(word) < RANDOM_CHARS_MIN // 2 or word.isalpha() for word in re.split(r"[-_.@:]", part)) and not (
        re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", part, re.IGNORECASE)
    ):
        return False
    counts = Counter(part).values()
    return -sum(n / len(part) * math.log2(n / len(part)) for n in counts) >= RANDOM_BITS_MIN
