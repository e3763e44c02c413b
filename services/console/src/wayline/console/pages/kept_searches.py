"""Searches of the list of jobs that a person keeps by names, in the browser: a cookie, so that no script is needed."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from wayline.console.access.visitor import PostedForm, VisitorDependency
from wayline.console.access.visitor import field as field_of
from wayline.console.pages.frame import go
from wayline.console.pages.job_search import address

router = APIRouter()
COOKIE: Final = "wayline-job-searches"
PATH: Final = "/jobs"
KEPT_MAX: Final = 20
NAME_MAX_CHARS: Final = 40
SEARCH_MAX_CHARS: Final = 500
COOKIE_MAX_BYTES: Final = 3_500
"""A browser takes 4,096 bytes of a cookie, its name and what is said of it included."""
KEPT_S: Final = 365 * 86_400


@dataclass(frozen=True, slots=True)
class KeptSearch:
    """A search and the name that a person gave it."""

    name: str
    text: str

    @property
    def address(self) -> str:
        return address(self.text)


def read(cookie: str) -> tuple[KeptSearch, ...]:
    """Return what a cookie keeps; of one that is broken nothing."""
    try:
        found = json.loads(urlsafe_b64decode(cookie.encode()))
        kept = tuple(KeptSearch(str(name)[:NAME_MAX_CHARS], str(text)[:SEARCH_MAX_CHARS]) for name, text in found)
    except (ValueError, TypeError, RecursionError):
        return ()
    return kept[:KEPT_MAX]


def written(kept: Sequence[KeptSearch]) -> str:
    """Write a cookie; the oldest searches go where it has no room for all."""
    for begin in range(max(len(kept) - KEPT_MAX, 0), len(kept) + 1):
        value = json.dumps([[one.name, one.text] for one in kept[begin:]], ensure_ascii=False)
        cookie = urlsafe_b64encode(value.encode("utf-8", "replace")).decode()
        if len(cookie) <= COOKIE_MAX_BYTES:
            return cookie
    return ""


def kept_by(request: Request) -> tuple[KeptSearch, ...]:
    """Return the searches that a browser keeps."""
    return read(request.cookies.get(COOKIE, ""))


@router.post("/jobs/searches")
async def keep(request: Request, visitor: VisitorDependency, form: PostedForm) -> Response:
    """Keep a search by a name, in the place of the one that has it, or forget one."""
    text, name = field_of(form, "s")[:SEARCH_MAX_CHARS], " ".join(field_of(form, "name").split())[:NAME_MAX_CHARS]
    forgotten = field_of(form, "forget")
    kept = [one for one in kept_by(request) if one.name not in (name, forgotten)]
    if text and name and not forgotten:
        kept.append(KeptSearch(name, text))
    answer = go(address(text))
    secure = request.app.state.is_tls
    answer.set_cookie(COOKIE, written(kept), max_age=KEPT_S, path=PATH, secure=secure, httponly=True, samesite="lax")
    return answer
