"""What each identity may publish and subscribe to: one table, from which the server's configuration is rendered.

A service publishes commands and its own facts, answers what it owns, and binds to its consumers; nothing more.

Permissions alone are not enough: JetStream answers on any reply subject, whatever the permissions.
So only the router and the executor, who write the logs, are users of the account that holds the streams. Every other
service and every tenant has an account of its own, which imports what this table allows it and nothing else; an
answer to a request from there goes back to that account, whatever subject it names (`accounts.py`).
"""

from __future__ import annotations

from wayline.chassis.access.identity import OWN_API, Identity
from wayline.chassis.topology import (
    BUCKETS,
    CONSUMERS,
    CONTROLS,
    PAYLOADS,
    PROVIDERS,
    REPLIES,
    RUN_BACKLOGS,
    STREAMS,
    UPLOADS,
)
from wayline.contracts.replicas import SERVICES

LEADER_READ_EVENTS = f"{OWN_API}.STREAM.MSG.GET.EVENTS"
DIRECT_READ_EVENTS = f"{OWN_API}.DIRECT.GET.EVENTS"
OBJECT_READ = (f"{OWN_API}.STREAM.MSG.GET.OBJ_{PAYLOADS}", f"{OWN_API}.DIRECT.GET.OBJ_{PAYLOADS}")
OBJECT_WRITE = (*OBJECT_READ, f"$O.{PAYLOADS}.C.*", f"$O.{PAYLOADS}.M.*")
UPLOAD_FIND = f"{OWN_API}.STREAM.MSG.GET.OBJ_{UPLOADS}"
UPLOAD_WRITE = (UPLOAD_FIND, f"$O.{UPLOADS}.C.*", f"$O.{UPLOADS}.M.*")
UPLOAD_READ = (UPLOAD_FIND, f"{OWN_API}.DIRECT.GET.OBJ_{UPLOADS}")
REPLY_OBJECTS = (
    f"{OWN_API}.STREAM.INFO.OBJ_{REPLIES}",
    f"{OWN_API}.STREAM.MSG.GET.OBJ_{REPLIES}",
    f"{OWN_API}.DIRECT.GET.OBJ_{REPLIES}",
    f"$O.{REPLIES}.C.*",
    f"$O.{REPLIES}.M.*",
)
# Letters without a tenant are of the version before.
COMMON = ("telemetry.traces", "dead.*.*.*", "dead.*.*", *OBJECT_WRITE, *REPLY_OBJECTS)
TELL_STORED = "tenants.stored.*"
DOCUMENT_VERBS = ("get", "list", "change", "chunks", "delete", "text")
TENANT_VERBS = ("create", "get", "list", "disable", "enable", "weight")
AGENT_VERBS = tuple("get list put delete restore latest versions version check label unlabel".split())
SCHEDULE_VERBS = ("put", "enable", "get", "list", "delete", "run")
WEBHOOKS = tuple(
    f"webhooks.{verb}.*" for verb in "put get list delete rotate test deliveries delivery redeliver".split()
)
SERVERS_CHANGED = "mcp.changed.*"
SERVER_VERBS = (
    *("put", "list", "get", "delete", "enable", "try", "trysaved", "approve", "impact"),
    *("authorize", "login", "openlogin", "finish", "forget", "forgetuser", "logins"),
    *("putsecret", "secrets", "deletesecret", "rotate"),
    *("resources", "read", "prompts", "prompt"),
)
CLIENT_MESSAGE = "mcp.client.*.*"
WATCH_RESOURCE = "mcp.watch.*"
AGENTS_USING = "agents.using.*"
RUN_CONTROLS = (
    *(f"pauses.{verb}.*" for verb in ("put", "list", "end")),
    *(f"runlimits.{verb}.*" for verb in ("put", "list", "delete")),
)
PERMITS = ("permits.ask.*", "permits.parked.*")
CHECK_PLACE = "permits.check.*"
MEMORY_VERBS = ("save", "recall", "list", "change", "forget", "consolidate", "summarize", "undo")
INSIGHT_VERBS = ("store", "recall", "list", "change")
SUBJECT_VERBS = ("get", "list", "put", "delete")
VECTOR_SETS = tuple(f"vectors.{verb}.*" for verb in ("get", "build", "switch", "undo"))
MEMORY = (
    *(f"memory.{verb}.*" for verb in MEMORY_VERBS),
    *(f"insights.{verb}.*" for verb in INSIGHT_VERBS),
    *(f"subjects.{verb}.*" for verb in SUBJECT_VERBS),
)
TRACE_VERBS = ("get", "steps", "search", "names", "receive", "tool", "tools")
TOOL_USE = ("traces.tooluse.*", "traces.toolcalls.*", "jobs.parked.*")
FEEDBACK = ("feedback.give.*", "feedback.list.*")
ANNOUNCE_TOOLS = "tools.announce.*.*"
INVOKE_TOOL = "tools.invoke.*.*"
WANT_TOOLS = "tools.wanted"
STOP_TOOL = "tools.stop.*.*"
TAKE_FINISHED = "jobs.finished.*"
READ_EVENTS = "jobs.events.*"


def replicas_of(service: str) -> tuple[str, str]:
    """Return the subjects on which the replicas of a service are asked about themselves, and one is drained."""
    return f"replicas.list.{service}.*", f"replicas.drain.{service}.*"


IDENTITIES = {
    identity.name: identity
    for identity in (
        Identity(
            "gateway",
            publish=(
                *COMMON,
                TELL_STORED,
                *UPLOAD_WRITE,
                "jobs.submit.*",
                "jobs.plan.*",
                *("forget.begin.*", "forget.get.*"),
                "signals.*.*",
                "approvals.*.*",
                "documents.index.*",
                *(f"documents.{verb}.*" for verb in ("accept", "reserve", "read", *DOCUMENT_VERBS)),
                "retrieval.search.*",
                "retrieval.embed.*",
                *VECTOR_SETS,
                *MEMORY,
                *(f"agents.{verb}.*" for verb in AGENT_VERBS),
                AGENTS_USING,
                *(f"tenants.{verb}.*" for verb in TENANT_VERBS),
                *(f"models.{verb}.*" for verb in ("list", "put", "delete", "providers")),
                *(f"budgets.{verb}.*" for verb in ("list", "put", "delete")),
                *(f"sessions.{verb}.*" for verb in ("list", "get", "delete")),
                *(f"schedules.{verb}.*" for verb in SCHEDULE_VERBS),
                *WEBHOOKS,
                *(f"settings.{verb}.*" for verb in ("get", "change")),
                *RUN_CONTROLS,
                CHECK_PLACE,
                *(about for service in SERVICES for about in replicas_of(service)),
                *(f"mcp.{verb}.*" for verb in SERVER_VERBS),
                CLIENT_MESSAGE,
                WATCH_RESOURCE,
                *(f"tools.{verb}.*" for verb in ("list", "call", "cancel", "search")),
                "budgets.hold.*",
                "budgets.charge.*",
                "costs.record.*",
                *(f"traces.{verb}.*" for verb in TRACE_VERBS),
                *(f"jobs.{verb}.*" for verb in ("list", "queued", "overview", "tag")),
                *(f"costs.{verb}.*" for verb in ("get", "session")),
                *FEEDBACK,
                "traces.usage.*",
                LEADER_READ_EVENTS,
                DIRECT_READ_EVENTS,
                f"{OWN_API}.STREAM.MSG.GET.DEAD",
                f"{OWN_API}.STREAM.MSG.DELETE.DEAD",
                f"{OWN_API}.STREAM.INFO.DEAD",
                f"{OWN_API}.STREAM.INFO.SIGNALS",
                # What was decided before, and not yet heard.
                f"{OWN_API}.STREAM.MSG.GET.SIGNALS",
                f"{OWN_API}.DIRECT.GET.SIGNALS",
                f"{OWN_API}.DIRECT.GET.DEAD",
            ),
            answers=(CLIENT_MESSAGE, WATCH_RESOURCE, "erase.gateway.*", *replicas_of("gateway")),
            subscribe=("live.*.*", "deltas.*.*"),
        ),
        Identity(
            "router",
            publish=(
                *COMMON,
                # Of its schedules.
                "jobs.submit.*",
                "jobs.run.*.*",
                "events.*.*",
                "signals.*.*",
                "replies.*.>",
                "inbox.*.>",
                LEADER_READ_EVENTS,
                DIRECT_READ_EVENTS,
                *(
                    f"{OWN_API}.STREAM.MSG.{verb}.{stream}"
                    for verb in ("GET", "DELETE")
                    for stream in ("INDEX", "TELEMETRY", "SUBMIT", "RUN")
                ),
                *(
                    f"{OWN_API}.STREAM.INFO.{stream}"
                    for stream in ("EVENTS", "RUN", "SIGNALS", "SUBMIT", f"OBJ_{PAYLOADS}")
                ),
                # How many tickets executors have yet to take.
                *(f"{OWN_API}.CONSUMER.INFO.RUN.{c.name}" for pair in RUN_BACKLOGS.items() for c in pair),
                f"{OWN_API}.STREAM.PURGE.SIGNALS",
                f"{OWN_API}.STREAM.MSG.GET.SIGNALS",
                f"{OWN_API}.DIRECT.GET.SIGNALS",
                "documents.describe.*",
                f"{OWN_API}.STREAM.MSG.GET.KV_{PROVIDERS}",
                *(f"{OWN_API}.STREAM.{verb}.KV_{CONTROLS}" for verb in ("MSG.GET", "PURGE")),
                f"$KV.{CONTROLS}.>",
                # Of a user who is forgotten, and of a job that is deleted: single messages, which are overwritten.
                *(
                    f"{OWN_API}.STREAM.MSG.DELETE.{stream}"
                    for stream in ("EVENTS", "SIGNALS", "DEAD", f"OBJ_{PAYLOADS}")
                ),
                *(f"{OWN_API}.{read}.DEAD" for read in ("STREAM.MSG.GET", "DIRECT.GET", "STREAM.INFO")),
                *(f"erase.{store}.*" for store in ("gateway", "registry", "retrieval", "tracing", "notifier")),
                *("notices.budget.*", "notices.webhook.*"),
            ),
            answers=(
                *replicas_of("router"),
                *("forget.begin.*", "forget.get.*"),
                *(f"agents.{verb}.*" for verb in AGENT_VERBS),
                *(f"tenants.{verb}.*" for verb in TENANT_VERBS),
                TELL_STORED,
                *(f"models.{verb}.*" for verb in ("list", "put", "delete")),
                *(
                    f"budgets.{verb}.*"
                    for verb in ("settle", "extend", "release", "hold", "charge", "list", "put", "delete")
                ),
                *(f"sessions.{verb}.*" for verb in ("list", "get", "delete")),
                *(f"schedules.{verb}.*" for verb in SCHEDULE_VERBS),
                *(f"settings.{verb}.*" for verb in ("get", "change")),
                *RUN_CONTROLS,
                *PERMITS,
                CHECK_PLACE,
                "jobs.plan.*",
                "jobs.start.*",
                "jobs.wake.*",
                AGENTS_USING,
            ),
            subscribe=(f"$KV.{PROVIDERS}.>", f"$KV.{CONTROLS}.>"),
            writes_logs=True,
        ),
        Identity(
            "executor",
            publish=(
                *COMMON,
                TELL_STORED,
                "events.*.*",
                "deltas.*.*",
                "jobs.run.*.*",
                "later.>",
                # The ends of waits that mean nothing any more.
                f"{OWN_API}.STREAM.PURGE.LATER",
                f"{OWN_API}.STREAM.INFO.LATER",
                "replies.*.>",
                "inbox.*.>",
                *(f"tools.{verb}.*" for verb in ("call", "cancel", "list", "resolve", "search", "void")),
                *(f"budgets.{verb}.*" for verb in ("settle", "extend", "release")),
                "jobs.start.*",
                "jobs.wake.*",
                *PERMITS,
                "documents.read.*",
                # What its jobs planned.
                "tasks.save.*",
                # Before a session's first call it reads what is remembered of the user.
                "memory.recall.*",
                # What a helper model has found in a session that has gone quiet.
                "memory.save.*",
                *("memory.list.*", "memory.summarize.*"),
                LEADER_READ_EVENTS,
                DIRECT_READ_EVENTS,
                f"{OWN_API}.STREAM.MSG.GET.SIGNALS",
                f"{OWN_API}.DIRECT.GET.SIGNALS",
                f"{OWN_API}.STREAM.MSG.GET.KV_{PROVIDERS}",
                f"$KV.{PROVIDERS}.>",
                f"{OWN_API}.STREAM.MSG.GET.KV_{CONTROLS}",
            ),
            answers=("models.providers.*", *replicas_of("executor")),
            subscribe=("signals.*.*", "approvals.*.*", f"$KV.{PROVIDERS}.>", f"$KV.{CONTROLS}.>"),
            writes_logs=True,
        ),
        Identity(
            "retrieval",
            publish=(
                *COMMON,
                TELL_STORED,
                f"{OWN_API}.STREAM.INFO.INDEX",
                # Whether a message of a deleted document still waits.
                f"{OWN_API}.STREAM.MSG.GET.INDEX",
                *("budgets.hold.*", "budgets.charge.*", "costs.record.*"),
                *UPLOAD_READ,
                # It erases uploads with their documents; nothing else is in there. A build before this one purges.
                f"{OWN_API}.STREAM.MSG.DELETE.OBJ_{UPLOADS}",
                f"{OWN_API}.STREAM.PURGE.OBJ_{UPLOADS}",
            ),
            answers=(
                *replicas_of("retrieval"),
                *(f"documents.{verb}.*" for verb in ("accept", "reserve", "describe", "read", *DOCUMENT_VERBS)),
                "retrieval.search.*",
                "retrieval.embed.*",
                "erase.retrieval.*",
                *VECTOR_SETS,
                *("tasks.save.*", "tasks.query.*", "documents.context.*"),
                *MEMORY,
            ),
        ),
        Identity(
            "tool_registry",
            publish=(
                *COMMON,
                TELL_STORED,
                *UPLOAD_WRITE,
                "retrieval.search.*",
                "retrieval.embed.*",
                *("tasks.query.*", "documents.context.*"),
                *("memory.save.*", "memory.recall.*", "insights.store.*", "insights.recall.*"),
                SERVERS_CHANGED,
                AGENTS_USING,
                "notices.tool.*",
                *TOOL_USE,
                # Images that its tools make are documents.
                "documents.index.*",
                *(f"documents.{verb}.*" for verb in ("accept", "reserve")),
            ),
            answers=(
                *replicas_of("tool_registry"),
                *(f"tools.{verb}.*" for verb in ("call", "cancel", "list", "resolve", "search", "void")),
                *(f"mcp.{verb}.*" for verb in SERVER_VERBS),
                SERVERS_CHANGED,
                ANNOUNCE_TOOLS,
                "erase.registry.*",
            ),
            asks_clients=(INVOKE_TOOL,),
            tells_clients=(WANT_TOOLS, STOP_TOOL),
        ),
        Identity(
            "tracing",
            publish=(
                *COMMON,
                TELL_STORED,
                LEADER_READ_EVENTS,
                DIRECT_READ_EVENTS,
                *(f"{OWN_API}.CONSUMER.INFO.{c.stream}.{c.name}" for c in CONSUMERS),
                *(f"{OWN_API}.STREAM.INFO.{stream.name}" for stream in STREAMS),
                *(f"{OWN_API}.STREAM.INFO.{bucket.stream}" for bucket in BUCKETS),
            ),
            answers=(
                *replicas_of("tracing"),
                *(f"traces.{verb}.*" for verb in (*TRACE_VERBS, "usage")),
                *(f"jobs.{verb}.*" for verb in ("list", "queued", "overview", "tag")),
                *(f"costs.{verb}.*" for verb in ("get", "session", "record")),
                *FEEDBACK,
                *TOOL_USE,
                TAKE_FINISHED,
                READ_EVENTS,
                "erase.tracing.*",
            ),
        ),
        Identity(
            "notifier",
            publish=(
                *COMMON,
                TELL_STORED,
                LEADER_READ_EVENTS,
                DIRECT_READ_EVENTS,
                # It passes over records while there is no webhook.
                f"{OWN_API}.STREAM.INFO.EVENTS",
                f"{OWN_API}.CONSUMER.RESET.EVENTS.notifier",
            ),
            answers=(*WEBHOOKS, "erase.notifier.*", *replicas_of("notifier")),
        ),
    )
}

ANSWERS_MAX = 1
ANSWERS_WITHIN = "15m"
ANSWERS_OF_CLIENTS_MAX = -1
"""A call of a tool is answered by any number of heartbeats and one result; -1 is no limit."""
