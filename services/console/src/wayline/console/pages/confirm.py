"""The page that asks once more before what cannot be undone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.datastructures import FormData

from wayline.console.access.visitor import Visitor
from wayline.console.pages.frame import Frame, show

TEMPLATE = "confirm.html"
ADDED: Final = frozenset({"token", "confirmed"})
"""Fields that the page writes itself."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What would be done, and how to go on or back."""

    title: str
    """The question: "Forget the document 'terms.pdf'?"."""
    button: str
    """What is done, as a verb: "Forget it"."""
    action: str
    """Where the form is sent, with a field `confirmed`."""
    back: str
    sentences: tuple[str, ...] = ()
    """What it does that cannot be undone."""
    listed: tuple[str, ...] = ()
    """The things that it concerns."""
    fields: tuple[tuple[str, str], ...] = ()
    """What the first form sent, to be sent again."""
    scope: str = "write"

    @classmethod
    def of(
        cls,
        act: str,
        thing: str,
        *,
        at: str,
        back: str = "",
        sentences: tuple[str, ...] = (),
        listed: tuple[str, ...] = (),
        fields: tuple[tuple[str, str], ...] = (),
        scope: str = "write",
    ) -> Confirmation:
        """Return the question before an act on the thing at an address, as "delete" is one at `/budgets/x/delete`."""
        path, mark, query = at.partition("?")
        verb = act.capitalize()
        return cls(
            f"{verb} {thing}?", f"{verb} it", f"{path}/{act}{mark}{query}", back or at, sentences, listed, fields, scope
        )


def is_confirmed(form: FormData) -> bool:
    """Return whether a form comes from the page that asks."""
    return form.get("confirmed") == "1"


def fields_of(form: FormData) -> tuple[tuple[str, str], ...]:
    """Return the fields of a form that are sent again."""
    return tuple((name, value) for name, value in form.multi_items() if name not in ADDED and isinstance(value, str))


async def ask(request: Request, visitor: Visitor, question: Confirmation, *, section: str) -> HTMLResponse:
    """Answer with the page that asks."""
    frame = Frame.of(request, visitor, title=question.title, section=section)
    return await show(request, TEMPLATE, frame, page=question)
