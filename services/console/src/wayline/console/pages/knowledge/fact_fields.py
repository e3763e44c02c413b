"""The fields of memories and insights: what their forms show, and what the API is sent. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from wayline.console.pages.form_values import WrongField, moment_of, names_of, number_of, whole_of
from wayline.console.render.formats import typed_moment, visible

STATES: Final = ("active", "quarantined", "superseded", "expired", "rejected")
NEW_FACT: Final = {
    "user": "", "type": "", "subject": "", "text": "", "category": "", "tier": "context", "importance": "5",
    "confidence": "", "keywords": "", "about": "", "replaces": "", "expires_at": "", "source": "user_noted",
}  # fmt: skip
"""The fields of a new fact, with what they are before anything is typed."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What differs between memories and insights."""

    title: str
    phrase: str
    path: str
    """Of the API."""
    address: str
    """Of the list of them."""
    categories: tuple[str, ...]
    conditions: tuple[str, ...]
    """By which a list is narrowed."""
    parameters: Mapping[str, str]
    """What the API calls these conditions, where that differs."""

    @property
    def is_memory(self) -> bool:
        return self.path == "/v1/memories"


KINDS: Final = MappingProxyType({
    "memories": Kind(
        "Memories", "this memory", "/v1/memories", "/knowledge/memories",
        ("profile", "preference", "technical", "project"),
        ("user", "tier", "category", "state"),
        {"user": "user_id"},
    ),
    "insights": Kind(
        "Insights", "this insight", "/v1/insights", "/knowledge/insights",
        ("preference", "objection", "timeline", "motivation", "relationship"),
        ("type", "subject", "category", "state"),
        {"type": "subject_type", "subject": "subject_id"},
    ),
})  # fmt: skip


def new_fact_of(kind: Kind, typed: Mapping[str, str], *, zone: Any) -> dict[str, Any]:
    """Return the body that has a fact remembered. Raises WrongField."""
    fact: dict[str, Any] = {
        "text": typed["text"],
        "category": typed["category"],
        "importance": whole_of(typed["importance"], what="Importance"),
        "confidence": number_of(typed["confidence"], what="Confidence"),
        "keywords": names_of(typed["keywords"]),
        "about": typed["about"] or None,
        "replaces": typed["replaces"] or None,
        "expires_at": moment_of(typed["expires_at"], zone, what="Expires"),
    }
    fact = {name: value for name, value in fact.items() if value not in (None, [])}
    if kind.is_memory:
        if not typed["user"]:
            raise WrongField("User: a memory is about one")
        return {"user_id": typed["user"], "facts": [fact | {"tier": typed["tier"]}], "source": typed["source"]}
    if not (typed["type"] and typed["subject"]):
        raise WrongField("Subject: an insight is about one, named by its type and its id")
    return {"subject": {"type": typed["type"], "id": typed["subject"]}, "facts": [fact], "source": typed["source"]}


def shown_fact(fact: Mapping[str, Any], zone: Any) -> dict[str, str]:
    """Return what the form shows of a fact, by field: what comes back as it was shown is not changed."""
    return {
        "text": visible(fact["text"]),
        "category": visible(fact["category"]),
        "tier": fact["tier"] or "",
        "importance": str(fact["importance"]),
        "confidence": f"{fact['confidence']:g}",
        "keywords": visible("\n".join(fact["keywords"])),
        "expires_at": typed_moment(fact["expires_at"], zone),
    }
