"""Text out of e-mails: who wrote to whom, what they wrote, and what is attached."""

from __future__ import annotations

import email
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import default
from typing import cast

from wayline.documents.errors import Unreadable
from wayline.documents.formats.html import html_page
from wayline.documents.readable import ReadableDocument, TextPage

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
HEADER_CHARS_MAX = 1_000
MESSAGES_MAX = 50
"""Messages within each other, as forwarding makes them."""


def mail_document(content: bytes) -> ReadableDocument:
    """Return the text of an e-mail, with the names of what is attached. Blocking; raises Unreadable."""
    message = cast("EmailMessage", email.message_from_bytes(content, policy=default))
    if not message.keys():
        raise Unreadable("This is no e-mail: it has no headers. Check the file and its media type.")
    texts = list(_texts(message, MESSAGES_MAX))
    title = " ".join(str(message.get("Subject", "")).split())[:HEADER_CHARS_MAX]
    return ReadableDocument([TextPage("\n\n".join(texts), markdown=True)], title)


def _texts(message: EmailMessage, messages_left: int) -> Iterator[str]:
    headers = [(name, " ".join(str(message[name]).split())[:HEADER_CHARS_MAX]) for name in _SHOWN if message[name]]
    # Two spaces at its end keep a line apart.
    yield "  \n".join(f"{name}: {value}" for name, value in headers)
    body = message.get_body(("plain", "html"))
    if body is not None:
        yield _body(cast("EmailMessage", body)).strip()
    attached: list[str] = []
    for part in message.iter_attachments():
        if part.get_content_type() == "message/rfc822" and messages_left > 0:
            for inner in part.iter_parts():
                yield from _texts(cast("EmailMessage", inner), messages_left - 1)
        else:
            attached.append(f"- {part.get_filename() or 'without a name'} ({part.get_content_type()})")
    if attached:
        yield "\n".join(["Attachments:", *attached])


def _body(body: EmailMessage) -> str:
    content = cast("bytes", body.get_payload(decode=True) or b"")
    charset = str(body.get_content_charset() or "")
    if body.get_content_type() == "text/html":
        return html_page(content, charset=charset, links=False).markdown
    from wayline.documents.characters import characters

    return characters(content, charset=charset)
