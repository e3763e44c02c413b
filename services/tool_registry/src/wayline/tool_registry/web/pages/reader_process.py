"""Read documents of strangers, as a process of its own: `python -I -m wayline.tool_registry.web.pages.reader_process`.

What parses hostile bytes may hang, use all memory or crash. Here that harms nothing else: the registry ends this
process and starts another. It sees no settings, keeps nothing, and ends when its input does.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import BinaryIO

from wayline.tool_registry.programs.program_guard import close_inherited_files

MEMORY_MAX_BYTES = 1024 * 1024 * 1024
PDF_PAGES_MAX = 200
PDF_SECONDS_MAX = 8.0
DOCX_PART_MAX_BYTES = 10 * 1024 * 1024
"""Of a document's XML, unpacked: reading it takes seconds at the worst."""
TEXT_CHARS_MAX = 1_000_000
LENGTH_BYTES = 4


def main(incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Answer one document after the other: a length and JSON, then a length and the bytes."""
    close_inherited_files()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while (about := _frame(incoming)) is not None and (content := _frame(incoming)) is not None:
        answer = json.dumps(_read(json.loads(about), content)).encode()
        outgoing.write(len(answer).to_bytes(LENGTH_BYTES, "big") + answer)
        outgoing.flush()


def _frame(incoming: BinaryIO) -> bytes | None:
    head = incoming.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    return incoming.read(int.from_bytes(head, "big"))


def _read(about: dict[str, str], content: bytes) -> dict[str, str]:
    from wayline.documents import Unreadable, without_controls

    try:
        title, text = _decoded(about["kind"], content, about.get("charset", ""), about.get("url", ""))
    except Unreadable as error:
        return {"error": str(error)}
    except Exception as error:  # parsers raise almost anything for a broken document
        return {"error": f"The document is damaged and cannot be read ({type(error).__name__})."}
    text = without_controls(text[:TEXT_CHARS_MAX])
    if not text.strip():
        return {"error": "There is no text in the document."}
    return {"title": without_controls(title), "text": text}


def _decoded(kind: str, content: bytes, charset: str, url: str) -> tuple[str, str]:
    from wayline.documents import characters, docx_text, html_page, pdf_pages

    match kind:
        case "pdf":
            pages = pdf_pages(content, pages_max=PDF_PAGES_MAX, seconds_max=PDF_SECONDS_MAX, cut=True)
            return "", "\n\n".join(page.strip() for page in pages)
        case "docx":
            return "", docx_text(content, part_max_bytes=DOCX_PART_MAX_BYTES, cut=True)
        case "html":
            page = html_page(content, charset=charset, url=url)
            return page.title, page.markdown
        case _:
            return "", characters(content, charset=charset)


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
