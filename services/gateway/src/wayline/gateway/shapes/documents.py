"""Bodies about documents and searches."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts import ids
from wayline.contracts.chat import Citation
from wayline.contracts.jobs import JobView
from wayline.contracts.knowledge import (
    CONDITIONS_MAX,
    URL_MAX_CHARS,
    Audience,
    CollectionName,
    Condition,
    Filter,
    QueryText,
    Trust,
)
from wayline.contracts.strict_json import NotStrictJson, read_json
from wayline.gateway.shapes.body import ONE_LINE, TEXT_WITHOUT_NUL, Body, Label, Metadata
from wayline.gateway.shapes.jobs import links

DocumentUser = Annotated[
    Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ONE_LINE)] | None,
    Field(description="Who sent it: it is deleted when this user is forgotten. A key of one user names that one."),
]


def _decoded_list(value: Any) -> Any:
    """Decode a list, which comes as JSON in a form's text."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value or "null")
    except NotStrictJson as error:
        raise ValueError(f"this is no JSON list: {error}") from None


class DocumentBody(Body):
    """A document as text, or the address that it is fetched from."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "tides.md", "text": "# Tides\n\nThe moon pulls the sea."}]}
    )

    name: Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=ONE_LINE)] | None = Field(
        default=None, description="What citations will call it; its address, when left out."
    )
    text: str | None = None
    url: Annotated[str, StringConstraints(max_length=URL_MAX_CHARS, pattern=r"^https?://[^\s]+$")] | None = Field(
        default=None, description="Instead of `text`: it is fetched from the public web, and anew when sent again."
    )
    metadata: Metadata = Field(default_factory=dict)
    document_id: ids.JobId | None = Field(default=None, description="Your own id; the same id again replaces it.")
    media_type: Annotated[str, StringConstraints(pattern=r"^text/[a-z0-9.+-]{1,60}$")] | None = Field(
        default=None, description="`text/markdown`, `text/html` …; guessed from the name when left out."
    )
    collection: CollectionName | None = None
    audience: Annotated[Audience | None, BeforeValidator(_decoded_list)] = Field(
        default=None, description="Who may find it (user ids, groups); null: everybody, empty: nobody."
    )
    valid_until: datetime | None = Field(default=None, description="From then on no search finds it.")
    trust: Trust | None = Field(
        default=None,
        description="`untrusted`: it holds the words of strangers, which taint the jobs that read them. Left out, a "
        "document is untrusted that is from an address: its name is one, or `url` in its metadata.",
    )
    user_id: DocumentUser = None

    @model_validator(mode="after")
    def _has_one_content(self) -> Self:
        if (self.text is None) == (self.url is None):
            raise ValueError("give either text or url")
        if self.url is None and self.name is None:
            raise ValueError("give a name")
        return self


class DocumentChangeBody(Body):
    """What becomes different of a document; what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"audience": ["ann", "group:law"]}]})

    name: Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=ONE_LINE)] = Field(
        default="", description="What citations call it; its words are found under the new one a moment later."
    )
    metadata: Metadata = Field(default_factory=dict, description="In place of all that it has.")
    collection: CollectionName | None = None
    audience: Audience | None = Field(
        default=None, description="Who may find it (user ids, groups); null: everybody, empty: nobody."
    )
    valid_until: datetime | None = Field(default=None, description="From then on no search finds it; null: always.")
    trust: Trust = "trusted"


def _decoded(value: Any) -> Any:
    """Decode metadata, which comes as a JSON object in a form's text."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value or "{}")
    except NotStrictJson as error:
        raise ValueError(f"this is not JSON: {error}") from None


class FileFields(Body):
    """What a multipart upload may say beside its `file`."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=ONE_LINE)]
    metadata: Annotated[Metadata, BeforeValidator(_decoded)] = Field(default_factory=dict)
    document_id: ids.JobId | None = None
    collection: CollectionName | None = None
    audience: Annotated[Audience | None, BeforeValidator(_decoded_list)] = Field(
        default=None, description="Who may find it (user ids, groups); null: everybody, empty: nobody."
    )
    valid_until: datetime | None = Field(default=None, description="From then on no search finds it.")
    trust: Trust | None = Field(
        default=None,
        description="`untrusted`: it holds the words of strangers, which taint the jobs that read them. Left out, a "
        "document is untrusted that is from an address: its name is one, or `url` in its metadata.",
    )
    user_id: DocumentUser = None


class SearchFilter(Filter):
    """Which passages may be found at all."""

    metadata: Metadata = Field(default_factory=dict, description="Every pair must be equal in the chunk.")
    document_ids: tuple[Label, ...] | None = Field(
        default=None, description="Only in these documents; null: in all, empty: in none."
    )
    where: dict[Label, Condition] = Field(
        default_factory=dict,
        max_length=CONDITIONS_MAX,
        description="What must hold of the document's metadata, by key.",
    )


class SearchBody(Body):
    """A question to the knowledge base."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "what moves the sea?", "top_k": 3}]})

    query: Annotated[QueryText, StringConstraints(pattern=TEXT_WITHOUT_NUL)] = Field(
        description="Of any length: of a long one the words that weigh most count."
    )
    mode: Literal["hybrid", "keyword", "vector"] = "hybrid"
    top_k: int = Field(default=10, ge=1, le=200)
    vector_weight: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The vector leg's share in hybrid: 0 is words alone. null: what the embedding model is worth, 0.5 "
        "for one that understands meaning, less for the lexical one.",
    )
    min_score: float | None = Field(default=None, description="Of a hit, from 0 to 1.")
    syntax: Literal["web", "plain"] = Field(
        default="web",
        description='`web`: "an exact phrase", -not, begin*; in queries of up to eight words. `plain`: words alone.',
    )
    fold_duplicates: bool = Field(default=True, description="Show one of several passages of nearly the same text.")
    join_neighbours: bool = Field(
        default=False,
        description="Make one hit of found passages that stand side by side in a document, at most 8 of them: the best "
        "one's id and score, their text in order. `top_k` counts passages all the same.",
    )
    audience: Audience | None = Field(
        default=None,
        description="On whose behalf (user ids, groups): a document with an audience is found by its names alone. "
        "A key of one user searches on behalf of that user alone.",
    )
    filter: SearchFilter = SearchFilter()


class CitedIn(BaseModel):
    """A job whose answer rests on passages of a document."""

    job_id: str
    agent: str
    session_id: str | None
    user_id: str | None
    created_at: datetime | None
    passages: tuple[Citation, ...] = Field(description="Those of the document, as the answer names them.")
    links: dict[str, str]

    @classmethod
    def of(cls, job: JobView, document_id: str, chunk_id: str | None) -> Self:
        """Return a job with what it cites of a document, or of one passage of it."""
        passages = tuple(
            one
            for one in job.citations
            if one.document_id == document_id and (chunk_id is None or one.chunk_id == chunk_id)
        )
        shown = {name: getattr(job, name) for name in ("job_id", "agent", "session_id", "user_id", "created_at")}
        return cls(**shown, passages=passages, links=links(job.job_id))
