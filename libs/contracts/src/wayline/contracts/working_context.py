"""What a conversation is about: the things that its tools named, and the tools themselves."""

from __future__ import annotations

from pydantic import Field

from wayline.contracts.base import Frozen

ENTITY_TYPE_PATTERN = r"^[a-z][a-z0-9_-]{0,31}$"
ENTITY_ID_MAX = 128
ENTITY_NAME_MAX = 120
ENTITIES_PER_RESULT_MAX = 20


class Entity(Frozen):
    """A thing that a tool's result is about, as the tool declares it: an order, a file, a flight."""

    type: str = Field(pattern=ENTITY_TYPE_PATTERN)
    id: str = Field(min_length=1, max_length=ENTITY_ID_MAX)
    name: str = Field(default="", max_length=ENTITY_NAME_MAX)


class KnownEntity(Entity):
    """An entity of a conversation."""

    tool: str = Field(description="Which tool declared it last.")
    untrusted: bool = Field(default=False, description="Its words are those of strangers.")


class KnownMemory(Frozen):
    """A memory that a conversation's model was told, and in which version."""

    fact_id: str
    version: int


class WorkingContext(Frozen):
    """What is known of a conversation without its messages."""

    entities: tuple[KnownEntity, ...] = Field(default=(), description="The newest 5 of each type, the newest last.")
    tools_used: tuple[str, ...] = Field(default=(), description="The last ones that were called, the newest last.")
    tools_discovered: tuple[str, ...] = Field(
        default=(), description="Tools that the model was told of after its first call."
    )
    memories: tuple[KnownMemory, ...] = Field(
        default=(), description="What the model was told of what is remembered of its user."
    )
