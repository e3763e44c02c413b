"""Take the secrets that a server is sent out of all that it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote_plus

import orjson

from wayline.contracts.server_config import ServerConfig

HIDDEN = "***"
ERROR_CHARS_MIN = 4
"""A shorter value is no secret, and would take words out of every error."""
TEXT_CHARS_MIN = 6
"""Of a value that is taken out of results and descriptions: `true` and `info` are words of theirs."""
NAME_CHARS_MIN = 12
"""Of a value that is taken out of names, schemas and addresses, which have to be sent back as they are; and of one
word of several."""
TOKENS_MAX = 100
"""Tokens come and go: of more the oldest are forgotten."""
FREE_TEXTS = frozenset({"description", "title", "$comment", "text"})
"""Fields that are read and never sent back."""
NUMBER = re.compile(r"[-+0-9.eE]+")
SECRET_NAME = re.compile(r"token|key|secret|pass|pwd|credential|auth|cookie|session|private|dsn|pat$", re.IGNORECASE)
NO_SECRET = re.compile(r"[A-Za-z]+|[~.]{0,2}/\S*|[A-Za-z]:\\\S*|https?://[^@?\s]+")
"""A plain word, a directory or an address, as a variable has it whose name says nothing of a secret."""


class ServerSecrets:
    """What one server must not repeat: values of its configuration, and tokens."""

    def __init__(self, server: ServerConfig) -> None:
        self._whole = _whole_values(server)
        self._words = {word for value in self._whole for word in value.split()}
        self._settings = _settings(server)
        self._tokens: tuple[str, ...] = ()
        self._sort()

    def add_token(self, token: str) -> None:
        """Hide one more text."""
        if token not in self._tokens:
            self._tokens = (token, *self._tokens[: TOKENS_MAX - 1])
            self._sort()

    def add_values(self, values: Iterable[str]) -> None:
        """Hide the values of the tenant's secrets that the server is sent."""
        fresh = {text for value in values for text in (value, value.strip()) if text}
        self._whole |= fresh
        self._words |= {word for value in fresh for word in value.split()}
        # One that stands in a variable in clear, too, is a secret all the same.
        self._settings -= fresh
        self._sort()

    def hide(self, text: str) -> str:
        """Return an error without secrets: servers repeat in it what they were sent."""
        return _replaced(text, self._in_errors)

    def without_secrets(self, value: Any, field: str = "text") -> Any:
        """Return a definition, a list or a resource without secrets; short ones may be a part of a name."""
        if not self._in_errors:
            return value
        if isinstance(value, str):
            return self._in_json(value, self._in_texts if field in FREE_TEXTS else self._in_names)
        if isinstance(value, list):
            return [self.without_secrets(one, field) for one in value]
        if isinstance(value, dict):
            return {_replaced(key, self._in_names): self.without_secrets(one, key) for key, one in value.items()}
        return value

    def without_secrets_in_result(self, value: Any) -> Any:
        """Return a JSON value of a result without secrets, wherever they stand; text that is JSON stays JSON."""
        if not self._in_texts or (not isinstance(value, str) and self._is_clean(value)):
            return value
        return self._cleaned(value, self._in_texts)

    def _is_clean(self, value: Any) -> bool:
        """Return whether the whole of a JSON value surely holds no secret: much faster than a look at each part."""
        try:
            text = orjson.dumps(value).decode()
        except (TypeError, ValueError):
            # Such as a number of more than 64 bits.
            return False
        return not any(secret in text for secret in self._in_texts)

    def _cleaned(self, value: Any, secrets: Sequence[str]) -> Any:
        if isinstance(value, str):
            return self._in_json(value, secrets)
        if isinstance(value, list):
            return [self._cleaned(one, secrets) for one in value]
        if isinstance(value, dict):
            return {_replaced(key, secrets): self._cleaned(one, secrets) for key, one in value.items()}
        if self._numbers and isinstance(value, int | float):
            return HIDDEN if any(number in str(value) for number in self._numbers) else value
        return value

    def _in_json(self, text: str, secrets: Sequence[str]) -> str:
        """Return a text without secrets; what was JSON before is JSON after."""
        replaced = _replaced(text, secrets)
        if replaced is text or not text.lstrip().startswith(("{", "[")) or _read(replaced) is not None:
            return replaced
        if (value := _read(text)) is None:
            return replaced
        # A secret stands there as a number, across several values, or after a backslash.
        cleaned = json.dumps(self._cleaned(value, secrets), ensure_ascii=False)
        return cleaned if _replaced(cleaned, secrets) is cleaned else json.dumps(HIDDEN)

    def _sort(self) -> None:
        """Bring the texts to look for into their order: the longest first, because one may hold another."""
        every = {*self._whole, *self._words, *self._tokens}
        self._in_errors = _spelled(text for text in every if len(text) >= ERROR_CHARS_MIN)
        # A model gives back what it reads in results and names: a directory has to stay one.
        every -= self._settings
        self._in_names = _spelled(text for text in every if len(text) >= NAME_CHARS_MIN)
        short = {text for text in self._whole - self._settings if len(text) >= TEXT_CHARS_MIN}
        self._in_texts = _spelled(short | {text for text in every if len(text) >= NAME_CHARS_MIN})
        self._numbers = tuple(text for text in self._in_texts if NUMBER.fullmatch(text))


def _settings(server: ServerConfig) -> set[str]:
    """Return the values of variables that are no secrets, unless a header or another variable has them as one."""
    values = {name: value.get_secret_value() for name, value in server.env.items()}
    settings = {value for name, value in values.items() if _is_setting(name, value)}
    return settings - {value for name, value in values.items() if not _is_setting(name, value)} - _sent(server)


def _is_setting(name: str, value: str) -> bool:
    return SECRET_NAME.search(name) is None and NO_SECRET.fullmatch(value) is not None


def _whole_values(server: ServerConfig) -> set[str]:
    values = _sent(server) | {value.get_secret_value() for value in server.env.values()}
    return {text for value in values for text in (value, value.strip()) if text}


def _sent(server: ServerConfig) -> set[str]:
    """Return what is sent to a server over HTTP."""
    headers = {name.lower(): value.get_secret_value() for name, value in server.headers.items()}
    # What follows `Bearer` or another scheme, which is a word of many texts.
    credentials = {value.partition(" ")[2] for name, value in headers.items() if name.endswith("authorization")}
    values = {*headers.values()} | credentials | _query_values(server.url or "")
    if server.oauth is not None and server.oauth.client_secret is not None:
        values.add(server.oauth.client_secret.get_secret_value())
    return values


def _query_values(url: str) -> set[str]:
    query = url.partition("?")[2]
    sent = {part.partition("=")[2] for part in query.split("&")} | {query}
    return sent | {unquote_plus(value) for value in sent}


def _spelled(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts as they are and as JSON has them, the longest first."""
    spellings = {
        spelling
        for text in texts
        for spelling in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
    }
    return tuple(sorted(spellings, key=len, reverse=True))


def _replaced(text: str, secrets: Sequence[str]) -> str:
    """Return a text without secrets, the same object where it holds none."""
    # Much faster than a search for all of them at once, and nearly all texts hold none.
    found = [secret for secret in secrets if secret in text]
    return re.sub("|".join(map(re.escape, found)), HIDDEN, text) if found else text


def _read(text: str) -> Any:
    """Return the JSON value of a text; None: it is not JSON, or null."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
