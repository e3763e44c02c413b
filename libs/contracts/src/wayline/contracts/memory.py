"""What is remembered: subjects, insights about them, and facts about users. Each fact says where it is from."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any, Literal

import orjson
from pydantic import ConfigDict, Field, StringConstraints, model_validator

from wayline.contracts.base import Frozen, Request
from wayline.contracts.ids import USER_PATTERN

FactKind = Literal["memory", "insight"]
"""`memory`: about the user of a conversation. `insight`: about a subject."""
MemoryCategory = Literal["profile", "preference", "technical", "project"]
InsightCategory = Literal["preference", "objection", "timeline", "motivation", "relationship"]
Tier = Literal["core", "important", "context"]
"""How long a memory counts: for ever, 90 days, 30 days after it was said last."""
FactState = Literal["active", "quarantined", "superseded", "expired", "rejected"]
"""Only `active` facts are recalled; a `quarantined` one waits for a person; the others are history."""
FactTrust = Literal["own", "inferred", "stranger"]
"""`own`: the words of the user or of a person. `inferred`: none stand behind it. `stranger`: of a tainted run."""
FactSource = Literal["agent_extracted", "user_noted", "system_inferred"]
MemoryMode = Literal["off", "read", "read_write"]
"""What an agent may do with memory."""

FACTS_PER_SAVE_MAX = 20
FACT_CHARS_MAX = 1_000
QUOTE_CHARS_MAX = 1_000
KEYWORDS_MAX = 16
CONFIDENCE = 0.8
"""Of a fact whose writer does not say how sure it is."""
CAPS: dict[Tier, int] = {"core": 8, "important": 12, "context": 6}
"""How many memories of a tier one user has; over it the least relevant goes."""
CONVERSATIONS_MAX = 100
"""Of those in which a fact was said or used the newest are shown."""
NO_MEMORIES = "No memories stored for this user"

UserId = Annotated[str, StringConstraints(pattern=USER_PATTERN)]
FactId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=FACT_CHARS_MAX)]
Keyword = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=500)]
SubjectType = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
SubjectId = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,128}$")]


class SubjectRef(Frozen):
    """Which subject is meant: a person, a company, a thing."""

    type: SubjectType
    id: SubjectId


class SubjectLink(SubjectRef):
    """Another subject, and what it is to this one."""

    kind: str = Field(min_length=1, max_length=64)


class Subject(SubjectRef):
    """Something that insights are about."""

    name: str = Field(default="", max_length=200)
    attributes: dict[str, Any] = Field(default_factory=dict)
    links: tuple[SubjectLink, ...] = Field(default=(), max_length=100)
    insights: int = Field(default=0, description="How many are active.")
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Quoted(Frozen):
    """Where the user's words stand that a fact rests on, as the holder of the log has found them."""

    job_id: str
    seq: int = Field(ge=0, description="Of the event; 0: in one of the messages before the job.")
    said_at: datetime | None = Field(default=None, description="When the user sent that message.")


class NewFact(Frozen):
    """A fact that is to be remembered."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: Text
    category: str = Field(min_length=1, max_length=32)
    tier: Tier = "context"
    importance: int = Field(default=5, ge=1, le=10)
    confidence: float = Field(default=CONFIDENCE, ge=0, le=1)
    keywords: tuple[Keyword, ...] = Field(default=(), max_length=KEYWORDS_MAX)
    quote: str | None = Field(default=None, max_length=QUOTE_CHARS_MAX, description="The user's own words.")
    about: str | None = Field(
        default=None,
        max_length=64,
        description="What it is the value of, such as `home city`: another value of the same is a conflict.",
    )
    replaces: FactId | None = Field(default=None, description="The fact that this one supersedes.")
    expires_at: datetime | None = Field(default=None, description="None: its tier decides.")
    valid_from: datetime | None = None
    quoted: Quoted | None = Field(
        default=None,
        description="Where the quote was found in the log. Set by the service that looked, never by a model.",
    )
    of_assistant: bool = Field(default=False, description="Its words were the assistant's, as the log says.")


class WrittenBy(Frozen):
    """Who has a fact remembered, and where."""

    source: FactSource = "agent_extracted"
    agent: str | None = None
    job_id: str | None = None
    step: int | None = None
    conversation: str | None = Field(default=None, max_length=200)
    tainted_by: tuple[str, ...] = Field(
        default=(), max_length=20, description="The tools whose words of strangers the job had read."
    )
    by: str | None = Field(default=None, max_length=200, description="The person or key that acts, where one does.")
    unsaid: tuple[int, ...] = Field(
        default=(),
        max_length=FACTS_PER_SAVE_MAX,
        description="The facts, from 0, of whose words too few were said in the conversation, as its log says.",
    )


class FactConversation(Frozen):
    """A conversation in which a fact was said or used."""

    conversation: str = Field(description="The session, or the job where there is none.")
    job_id: str | None = Field(default=None, description="The last job of it that said or used the fact.")
    said: int = Field(default=0, description="How often it was said there.")
    used: int = Field(default=0, description="Calls and jobs there that it was recalled for.")
    first_at: datetime
    last_at: datetime


class SummarizedFact(Frozen):
    """A fact that a summary stands for, in the version that it took the place of."""

    fact_id: str
    version: int
    text: str
    quote: str | None = None
    quoted: Quoted | None = None
    job_id: str | None = Field(default=None, description="The job that wrote it.")
    step: int | None = None


class Fact(Frozen):
    """A fact as it is stored: one version of it."""

    fact_id: str
    version: int = 1
    kind: FactKind = "memory"
    user_id: str | None = None
    subject: SubjectRef | None = None
    other_subject: SubjectRef | None = None
    text: str
    category: str
    tier: Tier | None = Field(default=None, description="Of a memory.")
    importance: int = 5
    confidence: float = CONFIDENCE
    keywords: tuple[str, ...] = ()
    about: str | None = None
    source: FactSource = "agent_extracted"
    state: FactState = "active"
    trust: FactTrust = "inferred"
    quote: str | None = None
    quoted: Quoted | None = None
    agent: str | None = None
    job_id: str | None = Field(default=None, description="The job that wrote it.")
    step: int | None = None
    conversation: str | None = None
    tainted_by: tuple[str, ...] = ()
    recorded_at: datetime
    valid_from: datetime | None = None
    last_said_at: datetime
    retired_at: datetime | None = None
    retired_because: str | None = None
    expires_at: datetime | None = None
    times: int = Field(default=1, description="How often it was said.")
    uses: int = Field(default=0, description="Calls and jobs that it was recalled for.")
    last_used_at: datetime | None = None
    conflicts_with: tuple[str, ...] = Field(default=(), description="Active facts that say something else.")
    conversations: tuple[FactConversation, ...] = Field(
        default=(), description="Where it was said or used, the newest first; told of facts that are asked for by id."
    )
    stands_for: tuple[SummarizedFact, ...] = Field(
        default=(), description="Of a summary the facts whose place it took; told of facts that are asked for by id."
    )


class FoundFact(Fact):
    """A fact and how well it fits what was asked."""

    similarity: float = Field(default=0, description="0..1; 0 where nothing was asked for.")
    why: dict[str, float] = Field(default_factory=dict, description="`semantic`, `keyword`, `fuzzy`: 0..1 each.")


class FactOutcome(Frozen):
    """What became of a fact that was to be remembered."""

    outcome: Literal["saved", "merged", "known", "quarantined", "refused"]
    fact_id: str | None = None
    version: int | None = None
    code: str | None = Field(default=None, description="Why it was refused, or what was changed on its way in.")
    reason: str | None = None
    conflicts_with: tuple[str, ...] = ()


class FactsSaved(Frozen):
    """What became of each fact, in their order."""

    outcomes: tuple[FactOutcome, ...]
    retired: tuple[str, ...] = Field(default=(), description="Facts that went because a tier was full or out of date.")
    repeated: bool = Field(default=False, description="The stored answer to the same key.")


class SaveMemories(Request, subject="memory.save.{tenant}", replies=FactsSaved):
    """Remember facts about a user, once for the key however often this is asked."""

    terse = True

    key: Key = Field(description="Of the tool call or the HTTP request; the same key with other facts is a conflict.")
    user_id: UserId
    facts: tuple[NewFact, ...] = Field(min_length=1, max_length=FACTS_PER_SAVE_MAX)
    written: WrittenBy = WrittenBy()

    def content_hash(self) -> str:
        """Return the hash of what is asked for under the key."""
        return content_hash_of(self.user_id, self.facts)


class FactsRecalled(Frozen):
    """The facts that fit, best first."""

    facts: tuple[FoundFact, ...]
    matched: int = Field(description="Facts that fit, also those beyond the limit.")
    total: int = Field(description="Facts that there are.")
    note: str | None = None
    degraded: str | None = Field(default=None, description="The way of searching that did not answer, and why.")
    gone: tuple[str, ...] = Field(default=(), description="Of the facts that the asker knows those that do not count.")


class RecallMemories(Request, subject="memory.recall.{tenant}", replies=FactsRecalled):
    """Find what is remembered of a user."""

    terse = True

    user_id: UserId
    search_terms: tuple[Annotated[str, StringConstraints(max_length=10_000)], ...] = Field(default=(), max_length=10)
    categories: tuple[MemoryCategory, ...] | None = Field(default=None, description="None: of all; empty: of none.")
    tiers: tuple[Tier, ...] | None = None
    limit: int = Field(default=10, ge=1, le=100)
    key: Key | None = Field(default=None, description="Counts a use of each fact, once for the key.")
    as_of: datetime | None = Field(default=None, description="As it was known then; None: now.")
    always: tuple[Tier, ...] = Field(default=(), description="Memories of these tiers also where they do not fit.")
    known: tuple[FactId, ...] = Field(
        default=(),
        max_length=100,
        description="Facts that the asker knows, as they are now; `gone` says the rest.",
    )
    own_only: bool = Field(default=False, description="Only the user's or a person's own word.")
    similarity_min: float = Field(default=0, ge=0, le=1)
    conversation: str | None = Field(default=None, max_length=200, description="In which the facts are used.")
    job_id: str | None = Field(default=None, max_length=200, description="The job that uses them.")


class FactPage(Frozen):
    """Some facts, the newest first; `next_cursor` asks for more."""

    facts: tuple[Fact, ...]
    next_cursor: str | None = None


class ListMemories(Request, subject="memory.list.{tenant}", replies=FactPage):
    """Page through facts, the newest first."""

    user_id: UserId | None = Field(default=None, description="None: of all users.")
    fact_ids: tuple[FactId, ...] | None = Field(default=None, description="Only these; empty: none.")
    states: tuple[FactState, ...] = ("active",)
    category: str | None = None
    tier: Tier | None = None
    conversation: str | None = None
    limit: int = Field(default=50, ge=1, le=500)
    cursor: str | None = None


class FactChange(Frozen):
    """What becomes different of a fact; what is left out stays."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", json_schema_extra={"examples": [{"tier": "core"}, {"text": "Lives in Bonn."}]}
    )

    text: Text | None = None
    category: str | None = Field(default=None, min_length=1, max_length=32)
    tier: Tier | None = None
    importance: int | None = Field(default=None, ge=1, le=10)
    confidence: float | None = Field(default=None, ge=0, le=1)
    keywords: tuple[Keyword, ...] | None = Field(default=None, max_length=KEYWORDS_MAX)
    expires_at: datetime | None = None


class ChangeFact(Request):
    """Change a fact: a new version supersedes it, nothing is overwritten."""

    terse = True

    fact_id: FactId
    user_id: UserId | None = Field(default=None, description="Only if it is this user's; None: whosever it is.")
    change: FactChange = FactChange()
    decision: Literal["release", "reject"] | None = Field(default=None, description="On a quarantined fact.")
    if_version: int | None = Field(default=None, description="Only while this is its version.")
    by: str = Field(min_length=1, max_length=200)
    reason: str | None = Field(default=None, max_length=500)


class ChangeMemory(ChangeFact, subject="memory.change.{tenant}", replies=Fact):
    """Change a memory, or decide on one that is quarantined."""


class MemoriesForgotten(Frozen):
    """How much was deleted, by table."""

    facts: int = 0
    versions: int = 0
    uses: int = 0
    conflicts: int = 0
    writes: int = 0
    changes: int = 0
    subjects: int = 0


class ForgetMemories(Request, subject="memory.forget.{tenant}", replies=MemoriesForgotten):
    """Delete all that is remembered of a user or of a subject, or single facts, with their history."""

    user_id: UserId | None = None
    subject_ref: SubjectRef | None = None
    fact_ids: tuple[FactId, ...] = Field(default=(), max_length=1_000)
    job_id: str | None = Field(default=None, description="All that one job wrote.")
    bring_back: bool = Field(
        default=False,
        description="Where a summary is deleted, what it stands for counts again, instead of going with it.",
    )

    @model_validator(mode="after")
    def _names_something(self) -> ForgetMemories:
        if self.user_id is None and self.subject_ref is None and not self.fact_ids and self.job_id is None:
            raise ValueError("name a user, a subject, a job or facts")
        return self


class StoreInsights(Request, subject="insights.store.{tenant}", replies=FactsSaved):
    """Remember insights about a subject, once for the key."""

    terse = True

    key: Key
    about: SubjectRef
    other: SubjectRef | None = None
    facts: tuple[NewFact, ...] = Field(min_length=1, max_length=FACTS_PER_SAVE_MAX)
    written: WrittenBy = WrittenBy()
    user_id: UserId | None = Field(default=None, description="In whose conversation it was said.")

    def content_hash(self) -> str:
        """Return the hash of what is asked for under the key."""
        named = [None if one is None else [one.type, one.id] for one in (self.about, self.other)]
        return content_hash_of(named, self.facts)


class RecallInsights(Request, subject="insights.recall.{tenant}", replies=FactsRecalled):
    """Find what is known about a subject."""

    terse = True

    about: SubjectRef
    query: str = Field(default="", max_length=10_000)
    categories: tuple[InsightCategory, ...] | None = None
    limit: int = Field(default=5, ge=1, le=100)
    key: Key | None = None
    as_of: datetime | None = None
    conversation: str | None = Field(default=None, max_length=200, description="In which the facts are used.")
    job_id: str | None = Field(default=None, max_length=200, description="The job that uses them.")


class ListInsights(Request, subject="insights.list.{tenant}", replies=FactPage):
    """Page through insights: of a subject the most important first, else the newest first."""

    about: SubjectRef | None = None
    fact_ids: tuple[FactId, ...] | None = None
    states: tuple[FactState, ...] = ("active",)
    category: str | None = None
    limit: int = Field(default=20, ge=1, le=500)
    cursor: str | None = None


class ChangeInsight(ChangeFact, subject="insights.change.{tenant}", replies=Fact):
    """Change an insight, or decide on one that is quarantined."""


class GetSubject(Request, subject="subjects.get.{tenant}", replies=Subject):
    """Ask for a subject."""

    ref: SubjectRef


class SubjectPage(Frozen):
    """Some subjects, by type and id."""

    subjects: tuple[Subject, ...]
    next_cursor: str | None = None


class ListSubjects(Request, subject="subjects.list.{tenant}", replies=SubjectPage):
    """Page through subjects."""

    type: SubjectType | None = None
    limit: int = Field(default=50, ge=1, le=500)
    cursor: str | None = None


class PutSubject(Request, subject="subjects.put.{tenant}", replies=Subject):
    """Make or change a subject; the links that are given take the place of those before."""

    ref: SubjectRef
    name: str = Field(default="", max_length=200)
    attributes: dict[str, Any] = Field(default_factory=dict)
    links: tuple[SubjectLink, ...] = Field(default=(), max_length=100)
    if_version: int | None = Field(default=None, description="Only while this is its version; 0: only a new one.")


class SubjectDeleted(Frozen):
    """What was deleted with a subject."""

    type: str
    id: str
    insights_deleted: int


class DeleteSubject(Request, subject="subjects.delete.{tenant}", replies=SubjectDeleted):
    """Delete a subject with its insights."""

    ref: SubjectRef


def content_hash_of(owner: object, facts: Iterable[Frozen]) -> str:
    """Hash what a caller says, without what others add on the way: a repeat may know more of the log."""
    said = [fact.model_dump(mode="json", exclude={"quoted", "of_assistant"}) for fact in facts]
    return sha256(orjson.dumps([owner, said], option=orjson.OPT_SORT_KEYS)).hexdigest()
