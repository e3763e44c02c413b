"""What retrieval's erasure is made of, and what it hears."""

from __future__ import annotations

from typing import Any

from wayline.chassis import Ask, asks
from wayline.contracts.forgetting import EraseFromRetrieval
from wayline.retrieval.documents.document_owners import DocumentOwners
from wayline.retrieval.erasure.handlers import DropDocument, EraseHandlers, ForgetFacts
from wayline.store import Store

ERASURES_MAX = 4
"""At once: each deletes documents with all of their passages."""


def erasure_asks(
    store: Store, owners: DocumentOwners, *, delete_document: DropDocument, forget_facts: ForgetFacts
) -> list[Ask[Any]]:
    """Return the request to erase, bound to what answers it."""
    handlers = EraseHandlers(store, owners, delete_document, forget_facts)
    return [asks(EraseFromRetrieval, handlers.on_erase, slots=ERASURES_MAX)]
