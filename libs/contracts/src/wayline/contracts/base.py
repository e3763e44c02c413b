"""What a message is: a frozen model that knows the subject it travels on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic_core import from_json

from wayline.contracts.errors import InvalidMessage

CATALOGUE: dict[str, type[Message]] = {}
"""Every message class by its subject template: proto/, permissions and the docs are made from it."""

_PLACE = re.compile(r"\{(\w+)\}")


def _plain(amount: Decimal) -> str:
    """Write a number as people do: `0` and `0.000000123`, never `0E-9` or `1.23E-7`."""
    text = str(amount)
    return f"{amount.normalize():f}" if "E" in text and amount.is_finite() else text


Usd = Annotated[Decimal, PlainSerializer(_plain, return_type=str, when_used="json-unless-none")]
"""An amount of dollars, in JSON a text without an exponent."""


class Frozen(BaseModel):
    """A value that cannot change; unknown fields are ignored, so that an older reader meets a newer writer.

    What people write (a job, an agent, a budget, a filter) refuses them where it comes in, for they are mistakes there;
    where it is read again, from a log, a table or an answer, the reader passes `extra="ignore"`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


PLAIN = frozenset({type(None), str, bool, int, float})
"""Types of most fields: nothing in them can shrink."""
_SAME_FIELDS: dict[frozenset[str], set[str]] = {}


def slim(value: Frozen) -> None:
    """Let a value that stays for long share with its like the note on which of its fields were given.

    Pydantic keeps a set of names with each instance: of what a waiting job holds, a third.
    """
    given = value.__pydantic_fields_set__
    object.__setattr__(value, "__pydantic_fields_set__", _SAME_FIELDS.setdefault(frozenset(given), given))


def slim_all(value: Frozen | tuple[Any, ...]) -> None:
    """Shrink a value and all it holds."""
    if isinstance(value, tuple):
        inside: Iterable[Any] = value
    else:
        slim(value)
        inside = vars(value).values()
    for held in inside:
        kind = type(held)
        # Not `isinstance`, which pydantic answers in Python for whatever is not of the very class; most are plain.
        if kind not in PLAIN and (tuple in kind.__mro__ or Frozen in kind.__mro__):
            slim_all(held)


class Message(Frozen):
    """A fact or a command on the bus. Publishing fills the braces of its subject, listening makes them `*`.

    Fields named in the braces come from the subject and are never part of the body: a body cannot name its own tenant.
    """

    subject_template: ClassVar[str] = ""
    addressed_by: ClassVar[tuple[str, ...]] = ()
    _tokens: ClassVar[tuple[str, ...]] = ("",)
    """Of the subject: for each the field it becomes, or nothing where it is always the same."""
    version: ClassVar[int] = 1
    from_clients: ClassVar[bool] = False
    """Whether clients may publish it themselves: what it refers to is then not believed."""
    terse: ClassVar[bool] = False
    """Whether only fields that are set travel, because the receiver refuses fields that it does not know."""

    body_max: ClassVar[int | None] = None
    """Bytes of a body beyond which its largest fields travel by the object store; None: what every message may have."""
    is_upload: ClassVar[bool] = False
    """Whether its large fields travel by the object store of uploads, and are deleted there with their document."""

    tenant: str = Field(default="", exclude=True, description="Whose message this is; taken from the subject.")

    def __init_subclass__(cls, *, subject: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if subject is None:
            return
        if subject in CATALOGUE:
            raise TypeError(f"{cls.__name__} and {CATALOGUE[subject].__name__} share {subject!r}")
        cls.subject_template = subject
        cls.addressed_by = tuple(_PLACE.findall(subject))
        places = (_PLACE.fullmatch(token) for token in subject.split("."))
        cls._tokens = tuple(place[1] if place else "" for place in places)
        CATALOGUE[subject] = cls

    @property
    def msg_id(self) -> str | None:
        """Return the id that makes publishing this message twice harmless, where its content names one."""
        return None

    @property
    def owner(self) -> str:
        """Return the owner of large fields in the object store: the job, the document, or nobody in particular."""
        return str(getattr(self, "job_id", None) or getattr(self, "document_id", None) or "-")

    @property
    def subject(self) -> str:
        """Return the literal subject this message is published on."""
        return self.subject_template.format_map(vars(self))

    @classmethod
    def listens(cls) -> str:
        """Return the subject with `*` for every brace: what a subscriber binds to."""
        return _PLACE.sub("*", cls.subject_template)

    @classmethod
    def schema_id(cls) -> str:
        """Return the value of the `Wayline-Schema` header, for instance `SubmitJob/1`."""
        return f"{cls.__name__}/{cls.version}"

    @classmethod
    def address(cls, subject: str) -> dict[str, str]:
        """Return the fields in a literal subject: `{"tenant": "acme"}` for `jobs.submit.acme`."""
        tokens = zip(cls._tokens, subject.split("."), strict=True)
        return {name: token for name, token in tokens if name}

    def to_wire(self) -> bytes:
        """Encode the JSON body, without the fields that the subject holds."""
        return self.__pydantic_serializer__.to_json(self, exclude=_unset(self) if self.terse else None)

    @classmethod
    def from_wire(cls, body: bytes, subject: str) -> Self:
        """Read a body that came on `subject`.

        Raises InvalidMessage with every wrong field named, or with what is wrong with the JSON.
        """
        return cls.read(cls._object(body), subject)

    @classmethod
    def _object(cls, body: bytes) -> dict[str, Any]:
        try:
            value = from_json(body)
        except ValueError as error:
            raise InvalidMessage(schema=cls.schema_id(), reason=f"the body is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise InvalidMessage(schema=cls.schema_id(), reason="the body must be a JSON object")
        return value

    @classmethod
    def owner_of(cls, body: bytes, subject: str) -> str:
        """Return the job that a body names whose large fields are still elsewhere; empty where it names none."""
        job_id = {**cls._object(body), **cls.address(subject)}.get("job_id")
        return job_id if isinstance(job_id, str) else ""

    @classmethod
    def read(cls, value: dict[str, Any], subject: str) -> Self:
        """Validate a decoded body together with what its subject says; raises InvalidMessage."""
        address = cls.address(subject)
        for name, named in address.items():
            if value.get(name, named) != named:
                raise InvalidMessage(
                    schema=cls.schema_id(),
                    reason=f"{name} in the body is {value[name]!r} but the subject says {named!r}",
                )
        try:
            return cls.model_validate({**value, **address})
        except ValidationError as error:
            raise InvalidMessage(schema=cls.schema_id(), reason=explain(error)) from None


def _unset(value: BaseModel) -> dict[str, Any]:
    """Return the unset fields of values that accept no unknown fields: an older build's reader may not know them."""
    closed = value.model_config.get("extra") == "forbid"
    found: dict[str, Any] = {}
    for name in type(value).model_fields:
        held = getattr(value, name)
        if closed and name not in value.model_fields_set:
            found[name] = True
        elif isinstance(held, BaseModel) and (within := _unset(held)):
            found[name] = within
    return found


def tenant_of(subject: str) -> str:
    """Return the tenant in a literal subject; empty where no message of ours fits it or it names no tenant."""
    tokens = subject.split(".")
    for template, kind in CATALOGUE.items():
        pattern = template.split(".")
        if len(pattern) == len(tokens) and all(map(_fits, pattern, tokens)):
            return kind.address(subject).get("tenant", "")
    return tokens[1] if tokens[0] in ("events", "live") and len(tokens) == 3 else ""


def _fits(pattern: str, token: str) -> bool:
    return pattern == token or pattern.startswith("{")


class Request(Message):
    """A question on core NATS that is answered once: with a `replies` model, or with a Problem."""

    replies: ClassVar[type[BaseModel]]

    def __init_subclass__(cls, *, replies: type[BaseModel] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if replies is not None:
            cls.replies = replies


def explain(error: ValidationError) -> str:
    """Say what is wrong field by field: `options.max_steps: Input should be greater than 0`."""
    return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'body'}: {plain(e['msg'])}" for e in error.errors())


def plain(message: str) -> str:
    """Return a validation error's message without pydantic's prefix before a validator's own words."""
    return message.removeprefix("Value error, ")
