"""The traces page of Grafana: find a job among all, and see its tree, from Postgres alone."""

from __future__ import annotations

from .page import Choice, Dashboard, Row, Setting, chosen
from .panels import Column, Panel, Sql
from .questions import AGENT, DOLLARS, NAMES_MAX, TENANT, THESE, TRACE_ID

FOUND_MAX = 200
SHOWN_MAX = 20
SPANS_MAX = 5_000
JOINED_MAX = 1_000
"""Spans of a tenant's own programs beside them."""
ASKED_MAX = 80
"""Characters of a job's input that a row shows."""
EXACT_MAX = 2**53
"""A larger whole number of JSON is another one in a browser."""

STATUS = Choice("status", "Status", words=("queued", "running", "parked", "completed", "failed", "cancelled"))
MODEL = Choice(
    "model",
    "Model",
    sql=f"""SELECT coalesce(model, '-') FROM tracing.jobs WHERE $__timeFilter(created_at)
        GROUP BY 1 ORDER BY count(*) DESC LIMIT {NAMES_MAX}""",
)
SECONDS = Setting("seconds", "Seconds at least", "0")
DOLLARS_SPENT = Setting("dollars", "Dollars at least", "0")
TEXT = Setting("text", "Words of input, answer, error or id")
TRACE = Setting("trace", "Trace")
CONSOLE = Setting("console", "Console", "http://127.0.0.1:8081")

LASTED = "extract(epoch FROM coalesce(ended_at, now()) - created_at)::float8"
FOUND = f"""$__timeFilter(created_at) AND {THESE} AND {chosen("status", "status")}
    AND {chosen("coalesce(model, '-')", "model")}
    AND {LASTED} >= coalesce(nullif(${{seconds:sqlstring}}, ''), '0')::float8
    AND coalesce(cost_usd, 0) >= coalesce(nullif(${{dollars:sqlstring}}, ''), '0')::numeric
    AND strpos(lower(concat_ws(' ', job_id, trace_id, input, answer, error_code, error_message)),
        lower(${{text:sqlstring}})) > 0"""
COLUMNS = f"""created_at AS submitted, tenant, job_id AS job, agent, model, status, error_code AS error,
    {LASTED} AS seconds, steps, tokens, cost_usd::float8 AS cost, left(input, {ASKED_MAX}) AS asked,
    trace_id AS trace"""

SHOW = Column(
    "job",
    link="/d/wayline-traces?var-trace=${__data.fields.trace}&${__url_time_range}&${tenant:queryparam}"
    "&${agent:queryparam}&${status:queryparam}&${model:queryparam}&${seconds:queryparam}&${dollars:queryparam}"
    "&${text:queryparam}",
    link_title="Show its trace below",
    other_link="${console:raw}/jobs/${__data.fields.job}",
    other_title="Open it in the console",
)
SHOWN_AS = (SHOW, TRACE_ID, Column("seconds", unit="s"), Column("cost", unit=DOLLARS))

TREE = f"""
    WITH picked AS (
        SELECT coalesce(nullif(${{trace:sqlstring}}, ''), (
            SELECT trace_id FROM tracing.jobs WHERE {FOUND} ORDER BY created_at DESC, job_id DESC LIMIT 1
        )) AS trace_id
    ), owner AS (
        SELECT (SELECT tenant FROM tracing.jobs WHERE trace_id = (SELECT trace_id FROM picked) LIMIT 1) AS tenant
    ), kept AS MATERIALIZED (
        SELECT spans.*, jsonb_typeof(attributes) = 'object' AS named, NULL AS hung
        FROM tracing.spans, owner
        WHERE trace_id = (SELECT trace_id FROM picked)
            AND (owner.tenant IS NULL OR spans.tenant IN (owner.tenant, '-'))
        ORDER BY seq = 0, start
        LIMIT {SPANS_MAX}
    ), joined AS MATERIALIZED (
        SELECT spans.*, jsonb_typeof(attributes) = 'object' AS named, joined_traces.under AS hung
        FROM tracing.joined_traces
        JOIN owner USING (tenant)
        JOIN tracing.spans ON spans.trace_id = joined_traces.trace_id AND spans.tenant = joined_traces.tenant
        WHERE joins = (SELECT trace_id FROM picked) AND spans.span_id NOT IN (SELECT span_id FROM kept)
        ORDER BY start
        LIMIT {JOINED_MAX}
    ), shown AS MATERIALIZED (SELECT * FROM kept UNION ALL SELECT * FROM joined), root AS (
        SELECT span_id FROM kept ORDER BY parent_span_id IS NOT NULL, seq = 0, start LIMIT 1
    )
    SELECT
        (SELECT trace_id FROM picked) AS "traceID",
        span_id AS "spanID",
        CASE
            WHEN parent_span_id IN (SELECT span_id FROM shown) THEN parent_span_id
            WHEN span_id = (SELECT span_id FROM root) THEN ''
            WHEN coalesce(hung, anchor) <> span_id AND coalesce(hung, anchor) IN (SELECT span_id FROM kept)
                THEN coalesce(hung, anchor)
            ELSE (SELECT span_id FROM root)
        END AS "parentSpanID",
        name AS "operationName",
        service AS "serviceName",
        '[]' AS "serviceTags",
        kind,
        CASE status WHEN 'ok' THEN 1 WHEN 'error' THEN 2 ELSE 0 END AS "statusCode",
        (extract(epoch FROM start) * 1000)::float8 AS "startTime",
        coalesce(duration_ms, extract(epoch FROM now() - start)::float8 * 1000) AS duration,
        (
            SELECT coalesce(jsonb_agg(jsonb_build_object('key', key, 'value', CASE
                WHEN jsonb_typeof(value) = 'number' AND abs(value::numeric) > {EXACT_MAX} THEN to_jsonb(value::text)
                ELSE value
            END) ORDER BY key), '[]')
            FROM jsonb_each(
                CASE WHEN named THEN attributes ELSE '{{}}' END || jsonb_strip_nulls(jsonb_build_object(
                    'cost_usd', cost_usd::text,
                    'open', CASE WHEN duration_ms IS NULL THEN true END,
                    'error', CASE WHEN status = 'error' THEN true END
                ))
            )
        )::text AS tags,
        (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'timestamp', extract(epoch FROM (noted ->> 'at')::timestamptz) * 1000,
                'name', noted ->> 'name',
                'fields', jsonb_build_array(jsonb_build_object('key', 'event', 'value', noted ->> 'name')) || coalesce((
                    SELECT jsonb_agg(jsonb_build_object('key', key, 'value', value) ORDER BY key)
                    FROM jsonb_each(noted -> 'attributes')
                ), '[]')
            )), '[]')
            FROM jsonb_array_elements(events) AS noted
        )::text AS logs,
        (
            SELECT coalesce(jsonb_agg(
                jsonb_build_object('traceID', linked -> 'trace_id', 'spanID', linked -> 'span_id')
            ), '[]')
            FROM jsonb_array_elements(links) AS linked
        )::text AS "references"
    FROM shown
    ORDER BY start, seq"""


def table(title: str, description: str, order: str, *, width: int, height: int, rows: int) -> Panel:
    """Return a table of found jobs in some order."""
    ask = Sql(f"SELECT {COLUMNS} FROM tracing.jobs WHERE {FOUND} ORDER BY {order}, job_id DESC LIMIT {rows}")
    return Panel(
        title, description, [ask], unit="short", kind="table", width=width, height=height, columns=list(SHOWN_AS)
    )


FINDING = Row(
    "Find a job",
    [
        table(
            "Jobs found",
            f"The newest {FOUND_MAX} jobs of the window that match what is chosen above. An id shows its trace below.",
            "created_at DESC",
            width=24,
            height=9,
            rows=FOUND_MAX,
        )
    ],
)

CHOSEN = Row(
    "The chosen trace",
    [
        Panel(
            "Trace",
            "Every span of the trace, open ones too, with what it cost; bars leave out the time the job was parked. "
            f"Without a choice, the newest job above. At most {SPANS_MAX:,} spans.",
            [Sql(TREE)],
            unit="ms",
            kind="traces",
            width=24,
            height=16,
            parsed=("tags", "logs", "references", "serviceTags"),
        )
    ],
)

FIRST = Row(
    "Of the jobs found",
    [
        table(
            "Dearest",
            "Those that cost most. A cost that nobody knows is empty, and stands at the end.",
            "cost_usd DESC NULLS LAST",
            width=12,
            height=9,
            rows=SHOWN_MAX,
        ),
        table(
            "Slowest",
            "Those that took longest from submission to end, or until now; waits for a person count.",
            f"{LASTED} DESC",
            width=12,
            height=9,
            rows=SHOWN_MAX,
        ),
        Panel(
            "Most failing",
            "What fails, by agent and code, with the newest example: its id shows its trace above.",
            [
                Sql(f"""SELECT tenant, agent, error_code AS error, count(*) AS jobs,
                        coalesce(sum(cost_usd), 0)::float8 AS cost,
                        (array_agg(job_id ORDER BY created_at DESC, job_id DESC))[1] AS job,
                        (array_agg(left(error_message, {ASKED_MAX}) ORDER BY created_at DESC, job_id DESC))[1]
                            AS message,
                        (array_agg(trace_id ORDER BY created_at DESC, job_id DESC))[1] AS trace
                    FROM tracing.jobs WHERE status = 'failed' AND {FOUND}
                    GROUP BY tenant, agent, error_code ORDER BY jobs DESC, cost DESC LIMIT {SHOWN_MAX}""")
            ],
            unit="short",
            kind="table",
            width=24,
            columns=[SHOW, TRACE_ID, Column("cost", unit=DOLLARS)],
        ),
    ],
)

TRACES = Dashboard(
    uid="wayline-traces",
    title="Wayline traces",
    description="Find a job by who, what, how long and how dear, and see its trace. Generated by `make dashboards`.",
    rows=[FINDING, CHOSEN, FIRST],
    variables=[TENANT, AGENT, STATUS, MODEL, SECONDS, DOLLARS_SPENT, TEXT, TRACE, CONSOLE],
)
