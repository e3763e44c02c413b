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
ENCODINGS = frozenset({"base64", "quoted-printable"})
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
    if message.get_content_maintype() == "multipart" and not message.is_multipart():
        # Its parts cannot be told apart.
        yield _body(message).strip()
        return
    if said := _said(message):
        yield said
    attached: list[str] = []
    for part in message.iter_attachments():
        if part.get_content_type() == "message/rfc822" and messages_left > 0:
            for inner in _messages(cast("EmailMessage", part)):
                yield from _texts(inner, messages_left - 1)
        elif part.get_content_maintype() == "text" and not part.is_attachment() and not part.get_filename():
            # Mailing lists and some programs send what was written in several parts.
            yield _body(cast("EmailMessage", part)).strip()
        else:
            attached.append(f"- {part.get_filename() or 'without a name'} ({part.get_content_type()})")
    if attached:
        yield "\n".join(["Attachments:", *attached])


def _said(message: EmailMessage) -> str:
    """Return what was written: as plain text, else where that is blank as a page, else as the first text there is."""
    for kinds in (("plain",), ("html",)):
        body = message.get_body(kinds)
        if body is not None and (text := _body(cast("EmailMessage", body)).strip()):
            return text
    if message.get_content_type() != "multipart/alternative":
        return ""
    texts = (part for part in message.iter_parts() if part.get_content_maintype() == "text")
    return next((text for part in texts if (text := _body(cast("EmailMessage", part)).strip())), "")


def _messages(part: EmailMessage) -> Iterator[EmailMessage]:
    """Yield the message that a part holds; some programs encode it, which no standard allows."""
    for inner in part.iter_parts():
        encoded = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
        if encoded in ENCODINGS and not inner.keys():
            inner["Content-Transfer-Encoding"] = encoded
            content = cast("bytes", inner.get_payload(decode=True) or b"")
            yield cast("EmailMessage", email.message_from_bytes(content, policy=default))
        else:
            yield cast("EmailMessage", inner)


def _body(body: EmailMessage) -> str:
    content = cast("bytes", body.get_payload(decode=True) or b"")
    charset = str(body.get_content_charset() or "")
    if body.get_content_type() == "text/html":
        return html_page(content, charset=charset, links=False).markdown
    from wayline.documents.characters import characters

    return characters(content, charset=charset)
