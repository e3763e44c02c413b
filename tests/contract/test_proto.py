"""proto/ is what the code says, and what was once said stays readable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from wayline.chassis.access.permissions import IDENTITIES
from wayline.chassis.topology import STREAMS
from wayline.contracts import errors
from wayline.contracts.base import Message
from wayline.contracts.events import EVENT_TYPES

SAMPLES = Path(__file__).parents[2] / "proto" / "samples"
PROTOBUF = {"Spans"}
"""Its body is OTLP's, not ours."""
TO_EVERY_TENANT = {"WantTools"}


def samples(folder: str) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in sorted((SAMPLES / folder).glob("*.json"))]


def named(path: Path) -> tuple[str, int]:
    """`SubmitJob-1.bare.json` is a SubmitJob of version 1."""
    name, _, rest = path.name.rpartition("-")
    return name, int(rest.split(".")[0])


def missing_in(written: Any, sample: Any, where: str = "") -> Iterator[str]:
    """What the sample says and the other does not."""
    if isinstance(sample, dict) and isinstance(written, dict):
        for key, value in sample.items():
            yield from missing_in(written.get(key), value, f"{where}.{key}") if key in written else [f"{where}.{key}"]
    elif isinstance(sample, list) and isinstance(written, list) and len(sample) == len(written):
        for n, (one, other) in enumerate(zip(written, sample, strict=True)):
            yield from missing_in(one, other, f"{where}[{n}]")
    elif written != sample:
        yield f"{where}: {sample!r} became {written!r}"


def again(model: type[BaseModel], sample: dict[str, Any]) -> dict[str, Any]:
    """A body as this build writes it after it has read it."""
    return json.loads(model.model_validate(sample).model_dump_json())


@cache
def validator(kind: Any, proto: ModuleType) -> Draft202012Validator:
    """Return what validates bodies of a kind by its schema."""
    return Draft202012Validator(proto.schema_of(kind))


def test_what_is_checked_in_is_what_the_contracts_say(proto: ModuleType):
    assert proto.stale() == [], "run `make proto`"


def test_no_two_subjects_meet(bus_map: ModuleType):
    found = bus_map.channels()
    # A request and what it is answered with share no subject either: replies go to inboxes.
    assert [
        (one.subject, other.subject)
        for n, one in enumerate(found)
        for other in found[n + 1 :]
        if bus_map.meets(one.listens, other.listens)
    ] == []


def test_every_message_has_a_publisher_and_a_consumer(bus_map: ModuleType):
    by_the_bus_alone = {"later.{tenant}.{job_id}.{wait_id}"}

    unsaid = [c.subject for c in bus_map.channels() if not bus_map.who_says(c)]
    unheard = {c.subject for c in bus_map.channels() if not bus_map.who_hears(c)}

    assert (unsaid, unheard) == ([], by_the_bus_alone)


def test_a_tenant_is_named_by_the_subject_never_by_the_body(proto: ModuleType):
    for kind in proto.messages().values():
        schema = proto.schema_of(kind)
        assert not set(kind.addressed_by) & schema.get("properties", {}).keys(), kind
        assert "tenant" in kind.addressed_by or kind.__name__ in PROTOBUF | TO_EVERY_TENANT, kind


def test_every_reference_in_the_asyncapi_document_leads_somewhere(proto: ModuleType):
    document = json.loads((proto.ROOT / "asyncapi.json").read_text())

    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    for reference in set(references(document)):
        if reference.startswith("./"):
            assert (proto.ROOT / reference).exists(), reference
            continue
        node = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in node, reference
            node = node[part]


def test_every_stream_and_every_identity_is_in_the_asyncapi_document(proto: ModuleType):
    channels = json.loads((proto.ROOT / "asyncapi.json").read_text())["channels"].values()

    carried = {channel.get("x-wayline-stream") for channel in channels}
    spoken = {name for channel in channels for name in channel["x-wayline-says"]}

    # Advisories are the server's own messages, and what a probe writes says nothing.
    assert {stream.name for stream in STREAMS} - carried == {"ADVISORY", "PROBES"}
    assert set(IDENTITIES) <= spoken


def test_every_message_event_and_reply_has_a_sample(proto: ModuleType):
    present = {folder: {named(p)[0] for p in (SAMPLES / folder).glob("*.json")} for folder in ("messages", "replies")}
    versions = {named(p) for p in (SAMPLES / "messages").glob("*.json")}

    assert {(kind.__name__, kind.version) for kind in proto.messages().values()} - versions == {("Spans", 1)}
    assert proto.replies().keys() - present["replies"] == set()
    assert EVENT_TYPES.keys() - {named(p)[0] for p in (SAMPLES / "events").glob("*.json")} == set()


def test_samples_are_never_edited_and_never_deleted(proto: ModuleType):
    now = {p.relative_to(SAMPLES).as_posix(): sha256(p.read_bytes()).hexdigest() for p in SAMPLES.glob("*/*.json")}

    assert now == proto.sealed(), "a changed sample is a new version; a new one is sealed by tools/make_proto.py --seal"


@pytest.mark.parametrize("path", samples("messages"))
def test_a_sample_message_survives_a_round_trip(path: Path, proto: ModuleType):
    kind: type[Message] = proto.messages()[named(path)[0]]
    sample = json.loads(path.read_text())
    subject = kind.listens().replace("*", "acme")

    read = kind.from_wire(path.read_bytes(), subject)

    assert list(missing_in(json.loads(read.to_wire()), sample)) == []
    validator(kind, proto).validate(sample)


@pytest.mark.parametrize("path", samples("events"))
def test_a_sample_event_survives_a_round_trip(path: Path, proto: ModuleType, bus_map: ModuleType):
    kind, sample = EVENT_TYPES[named(path)[0]], json.loads(path.read_text())

    assert list(missing_in(again(kind, sample), sample)) == []
    validator(kind, proto).validate(sample)
    validator(bus_map.Record, proto).validate({"events": [sample]})


@pytest.mark.parametrize("path", samples("replies"))
def test_a_sample_reply_survives_a_round_trip(path: Path, proto: ModuleType):
    kind, sample = proto.replies()[named(path)[0]], json.loads(path.read_text())

    assert list(missing_in(again(kind, sample), sample)) == []
    validator(kind, proto).validate(sample)


@pytest.mark.parametrize("folder", ["messages", "events", "replies"])
def test_the_first_sample_of_each_says_every_field(folder: str, proto: ModuleType):
    """Else a field could be taken away and no sample would miss it."""
    kinds: dict[str, Any] = {"messages": proto.messages(), "events": EVENT_TYPES, "replies": proto.replies()}[folder]
    sampled_fields: dict[str, set[str]] = {}
    for path in (SAMPLES / folder).glob("*.json"):
        sampled_fields.setdefault(named(path)[0], set()).update(json.loads(path.read_text()))

    for name, kind in kinds.items():
        wanted = {field for field, about in kind.model_fields.items() if not about.exclude}
        assert wanted <= sampled_fields.get(name, set()) or name in PROTOBUF, name


def test_the_error_codes_that_clients_may_rely_on_are_still_there():
    codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")}

    assert codes >= {"unavailable", "rejected", "invalid_message", "not_found", "conflict", "full", "retry"}
