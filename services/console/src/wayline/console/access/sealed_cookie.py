"""The cookie of a browser that is signed in: it holds the API key, so it is encrypted and not only signed."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable
from dataclasses import asdict, dataclass
from secrets import token_bytes, token_urlsafe

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEPT_S = 12 * 3_600
"""A browser that asks for nothing so long is signed out."""
RENEWED_AFTER_S = 600
"""An older cookie is replaced, so that the time begins anew."""
NONCE_BYTES = 12
COOKIE_MAX_CHARS = 4_000
_PURPOSE = b"wayline console session"


@dataclass(frozen=True, slots=True)
class Session:
    """What a browser's cookie says."""

    token: str
    """What its forms must send back: another site can have a form sent, but cannot read this."""
    issued_s: float
    key: str | None = None
    """The API key; None where the gateway needs none."""

    @classmethod
    def begin(cls, key: str | None, *, now_s: float) -> Session:
        """Begin a session with a token of its own."""
        return cls(token_urlsafe(24), now_s, key)


class CookieSeal:
    """Encrypts sessions with AES-GCM under one key."""

    def __init__(self, key: bytes, clock: Callable[[], float]) -> None:
        self._aead = AESGCM(key)
        self._clock = clock

    def seal(self, session: Session) -> str:
        """Encrypt a session as the value of a cookie."""
        nonce = token_bytes(NONCE_BYTES)
        sealed = self._aead.encrypt(nonce, json.dumps(asdict(session)).encode(), _PURPOSE)
        return urlsafe_b64encode(nonce + sealed).decode()

    def open(self, value: str | None) -> Session | None:
        """Read a cookie; None where there is none, it was sealed by another key, was changed, or is too old."""
        if value is None or len(value) > COOKIE_MAX_CHARS:
            return None
        try:
            raw = urlsafe_b64decode(value)
            session = Session(**json.loads(self._aead.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], _PURPOSE)))
        except (NotBase64, ValueError, InvalidTag, TypeError):
            return None
        return session if self._clock() - session.issued_s < KEPT_S else None

    def renewed(self, session: Session) -> Session | None:
        """Return the session with its time begun anew; None: it is young enough."""
        now_s = self._clock()
        if now_s - session.issued_s < RENEWED_AFTER_S:
            return None
        return Session(session.token, now_s, session.key)

    def begin(self, key: str | None) -> Session:
        """Begin a session now."""
        return Session.begin(key, now_s=self._clock())
