"""Write proto/ from the contracts: a JSON Schema a message, the AsyncAPI document, and a table for people.

`python tools/make_proto.py` writes; `--check` lists stale files and fails; `--seal` adds new samples to SHA256SUMS.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from bus_map import OURS, Channel, Record, about, channels, consumers_of, stream_of, who_hears, who_says
from pydantic import BaseModel

from wayline.contracts.base import Message, Request
from wayline.contracts.errors import Problem
from wayline.contracts.events import EVENT_TYPES, Event

ROOT = Path(__file__).parents[1] / "proto"
SAMPLES = ROOT / "samples"
SUMS = SAMPLES / "SHA256SUMS"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(model: type[BaseModel], *, comment: str = "") -> dict[str, Any]:
    """Return the schema of a message's body, without the fields that are in its subject."""
    made = model.model_json_schema(mode="validation", ref_template="#/$defs/{model}")
    for name, field in model.model_fields.items():
        if field.exclude:
            made["properties"].pop(name, None)
    made.pop("description", None)
    text = about(model)
    return {
        "$schema": DIALECT,
        **({"$comment": comment} if comment else {}),
        "title": made.pop("title"),
        **({"description": text} if text else {}),
        **made,
    }


def replies() -> dict[str, type[BaseModel]]:
    """Return every model that answers a request."""
    kinds = {kind.replies for kind in OURS.values() if issubclass(kind, Request)} | {Problem}
    return {kind.__name__: kind for kind in sorted(kinds, key=lambda one: one.__name__)}


def messages() -> dict[str, type[Message]]:
    return {kind.__name__: kind for kind in sorted(OURS.values(), key=lambda one: one.__name__)}


def asyncapi() -> dict[str, Any]:
    """Return the bus as AsyncAPI 3.0."""
    found = channels()
    operations = dict(pair for channel in found for pair in _operations(channel))
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Wayline's bus",
            "version": "1",
            "description": "Generated from wayline.contracts, wayline.chassis.topology and "
            "wayline.chassis.access.permissions by `make proto`. "
            "Subjects are NATS subjects; braces are one token each.",
            "license": {"name": "Apache-2.0"},
        },
        "servers": {"bus": {"host": "127.0.0.1:4222", "protocol": "nats", "description": "As in `wayline up`."}},
        "defaultContentType": "application/json",
        "channels": {_id(channel): _described(channel) for channel in found},
        "operations": operations,
        "components": {"messages": _components(found)},
    }


def _id(channel: Channel) -> str:
    return channel.subject.replace("{", "").replace("}", "")


def _described(channel: Channel) -> dict[str, Any]:
    names = [token[1:-1] for token in channel.subject.split(".") if token.startswith("{")]
    stream = stream_of(channel.listens)
    bound = [{"name": c.name, "service": c.service} for c in consumers_of(channel.listens)]
    return {
        "address": channel.subject,
        "description": channel.about,
        "messages": {_component(channel): {"$ref": f"#/components/messages/{_component(channel)}"}},
        "parameters": {name: {"description": f"One token: the {name.replace('_', ' ')}."} for name in names},
        "x-wayline-kind": channel.kind,
        "x-wayline-says": who_says(channel),
        "x-wayline-hears": who_hears(channel),
        **({"x-wayline-stream": stream} if stream else {}),
        **({"x-wayline-consumers": bound} if bound else {}),
    }


def _component(channel: Channel) -> str:
    return channel.message.replace(" ", "")


def _operations(channel: Channel) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the operations of each identity; a service `receive`s what it subscribes to."""
    for name in who_hears(channel):
        yield (
            f"{name}.hears.{_id(channel)}",
            {
                "action": "receive",
                "channel": {"$ref": f"#/channels/{_id(channel)}"},
                **({"reply": {"messages": [_reply_ref(channel.replies)]}} if channel.replies else {}),
            },
        )
    for name in who_says(channel):
        if name != "the bus":
            yield (
                f"{name}.says.{_id(channel)}",
                {"action": "send", "channel": {"$ref": f"#/channels/{_id(channel)}"}},
            )


def _reply_ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/messages/{model.__name__}"}


def _components(found: list[Channel]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for channel in found:
        payload = {"payload": {"$ref": f"./{channel.schema}"}} if channel.schema else {}
        kind = OURS.get(channel.subject)
        if kind is not None and kind.__name__ == "Spans":
            payload = {"contentType": "application/x-protobuf"}
        made[_component(channel)] = {
            "name": kind.schema_id() if kind else channel.message,
            "summary": channel.about,
            **payload,
        }
    for name, model in replies().items():
        made[name] = {"name": name, "summary": about(model), "payload": {"$ref": f"./replies/{name}.json"}}
    return dict(sorted(made.items()))


def table() -> str:
    """Return the text of proto/README.md."""
    rows = ["| subject | message | published by | received by | stream |", "|---|---|---|---|---|"]
    for channel in channels():
        name = f"[{channel.message}]({channel.schema})" if channel.schema else channel.message
        answer = channel.replies.__name__ if channel.replies else ""
        reply = f" → [{answer}](replies/{answer}.json)" if answer else ""
        says, hears = ", ".join(who_says(channel)), ", ".join(who_hears(channel))
        rows.append(
            f"| `{channel.subject}` | {name}{reply} | {says} | {hears} | {stream_of(channel.listens) or 'core'} |"
        )
    events = [f"| [`{name}`](events/{name}.json) | {_carried(kind)} |" for name, kind in EVENT_TYPES.items()]
    parts = [
        "# The bus, as others may rely on it",
        "Generated by `make proto` from `wayline.contracts`, `wayline.chassis.topology` and "
        "`wayline.chassis.access.permissions`; `make check` fails when it is stale. Only `samples/` is kept by hand.",
        "- `messages/`, `events/`, `replies/`: one JSON Schema (2020-12) each: what a reader accepts as the body. "
        "Fields of the subject (`tenant`, `job_id` …) are not part of a body.\n"
        "- `asyncapi.json`: the whole bus as AsyncAPI 3.0.\n"
        "- `samples/`: a real body of each message, event and reply version. They must parse for ever and say the same "
        "when written again, so they are never edited: a change that needs that is a new version. "
        "`python tools/make_proto.py --seal` adds a new one to `SHA256SUMS`.",
        "A request is answered once on its reply subject (`models.providers` by each executor): with its reply, or "
        "with a [Problem](replies/Problem.json) and the header `Wayline-Error`. `client` is any program on the "
        "loopback bus of `wayline up` without credentials; it may use tenant `default` only. A client is a user of its "
        "tenant's account and hears nothing of another's: a result for `_INBOX.…` travels as `inbox.{tenant}.…`, which "
        "that account imports. *core* is not stored.",
        "**`Nats-Msg-Id` on `jobs.submit.{tenant}` is one for all tenants.** The server deduplicates by it over the "
        "whole stream for 100 ms, the least it allows: two tenants that publish `order-1` within them are told of one "
        "message, and the second gets `duplicate` in its ack though nothing of its own is stored. So say `job_id` in "
        "the body and send no header: the router makes one job of whatever comes with the same id, at any distance in "
        "time. Or begin the header with the tenant: `acme/order-1`, beside `order-1` in the body. The router logs a "
        "warning where a tenant's jobs are named by a bare header alone. The same holds for "
        "`signals.{tenant}.{job_id}`: a cancel needs no header. The gateway publishes again until its ack says no such "
        "thing.",
        "## Subjects",
        "\n".join(rows),
        "## Events",
        'A record on `events.{tenant}.{job_id}` is `{"events": [...]}`; these are the types. The vocabulary is closed: '
        "a reader passes over a type that it does not know, an executor does not claim its job.",
        "\n".join(["| type | carries, beside `job_id`, `seq`, `at` and `trace` |", "|---|---|", *events]),
    ]
    return "\n\n".join(parts) + "\n"


def _carried(event: type[Event]) -> str:
    return ", ".join(f"`{name}`" for name in event.model_fields if name not in Event.model_fields)


def files() -> dict[Path, str]:
    """Return every generated file with the text it must have."""
    made: dict[Path, str] = {}
    for name, kind in messages().items():
        schema = schema_of(kind, comment=f"{kind.schema_id()} on {kind.subject_template}")
        made[ROOT / "messages" / f"{name}.json"] = _json(schema)
    record = schema_of(Record, comment="Record/1 on events.{tenant}.{job_id}")
    made[ROOT / "messages" / "Record.json"] = _json(record)
    for name, event in EVENT_TYPES.items():
        made[ROOT / "events" / f"{name}.json"] = _json(schema_of(event))
    for name, model in replies().items():
        made[ROOT / "replies" / f"{name}.json"] = _json(schema_of(model))
    made[ROOT / "asyncapi.json"] = _json(asyncapi())
    made[ROOT / "README.md"] = table()
    return made


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def stale() -> list[str]:
    """Return the files that are missing, differ, or should not exist."""
    wanted = files()
    stale_files = [
        f"{p.relative_to(ROOT.parent)}" for p, text in wanted.items() if not p.exists() or p.read_text() != text
    ]
    present = {p for folder in ("messages", "events", "replies") for p in (ROOT / folder).glob("*.json")}
    return stale_files + [f"{p.relative_to(ROOT.parent)} (nothing makes it any more)" for p in present - wanted.keys()]


def write() -> None:
    wanted = files()
    for folder in ("messages", "events", "replies"):
        (ROOT / folder).mkdir(parents=True, exist_ok=True)
        for path in set((ROOT / folder).glob("*.json")) - wanted.keys():
            path.unlink()
    for path, text in wanted.items():
        path.write_text(text)


def sealed() -> dict[str, str]:
    """Return the samples that may never change, each with its hash."""
    lines = SUMS.read_text().splitlines() if SUMS.exists() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def seal() -> None:
    """Add the samples that are not in SHA256SUMS yet; one that is there is left as it is."""
    known = sealed()
    for path in SAMPLES.glob("*/*.json"):
        known.setdefault(path.relative_to(SAMPLES).as_posix(), sha256(path.read_bytes()).hexdigest())
    SUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(known.items())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when proto/ is stale")
    parser.add_argument("--seal", action="store_true", help="add new samples to SHA256SUMS")
    options = parser.parse_args()
    if options.check:
        if found := stale():
            sys.exit("proto/ is stale; run `make proto` and look at the difference:\n  " + "\n  ".join(found))
        return
    write()
    if options.seal:
        seal()


if __name__ == "__main__":
    main()
