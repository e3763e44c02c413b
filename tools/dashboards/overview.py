"""The first page of Grafana: jobs, queues, money, models, tools and traces."""

from __future__ import annotations

from wayline.telemetry import names

from .page import Dashboard, Row, chosen
from .panels import Column, Metric, Panel, Sql
from .questions import (
    AGENT,
    CENTS_OF_CENTS,
    DOLLARS,
    MODEL,
    OF_AGENT,
    TENANT,
    THESE,
    TO_TRACE,
    TOKENS,
    TRACE_ID,
    newest,
    quantiles,
    spent,
    spent_by_day,
)

TOOL = f"attributes->>'{names.GEN_AI_TOOL_NAME}'"
SHOWN_MAX = 20


JOBS = Row(
    "Jobs",
    [
        Panel(
            "Jobs ended per minute",
            "How many jobs reach their end each minute, by outcome.",
            [Metric("sum by (outcome) (rate(wayline_jobs_ended_total[$__rate_interval])) * 60", "{{outcome}}")],
            unit="cpm",
        ),
        Panel(
            "Latency of completed jobs",
            "From submission to the end, as the clock has it: a wait for a person counts.",
            quantiles("wayline_job_seconds", where='{outcome="completed"}'),
            unit="s",
        ),
        Panel(
            "Outcomes",
            "Jobs that ended in this window, by outcome, exactly.",
            [
                Sql(f"""SELECT status, count(*) AS jobs FROM tracing.jobs
                    WHERE $__timeFilter(ended_at) AND {THESE} GROUP BY status ORDER BY jobs DESC""")
            ],
            unit="short",
            kind="bargauge",
            width=4,
        ),
        Panel(
            "Waiting for a person",
            "Approvals and answers to tools' servers that parked jobs wait for. `wayline approvals` lists them.",
            [Metric("max(wayline_approvals_waiting)", "approvals")],
            unit="short",
            kind="stat",
            width=2,
        ),
        Panel(
            "In flight",
            "Jobs that executors hold right now. No executor holds a parked job.",
            [Metric("sum(wayline_jobs_in_flight)", "jobs")],
            unit="short",
            kind="stat",
            width=2,
        ),
    ],
)

QUEUES = Row(
    "Queues",
    [
        Panel(
            "Wait for an executor",
            "From submission until an executor first takes a job, by lane.",
            quantiles("wayline_job_queue_seconds", "lane"),
            unit="s",
        ),
        Panel(
            "Waiting for a person, by age",
            f"The {SHOWN_MAX} jobs that have waited longest for an approval or a decision, whatever the window.",
            [
                Sql(f"""SELECT jobs.tenant, jobs.job_id AS job, jobs.agent, jobs.waiting_for ->> 'why' AS why,
                        coalesce(jobs.waiting_for #>> '{{approvals,0,tool}}', jobs.waiting_for ->> 'tool') AS tool,
                        (
                            SELECT extract(epoch FROM now() - max((noted ->> 'at')::timestamptz))::float8
                            FROM tracing.spans, jsonb_array_elements(events) AS noted
                            WHERE spans.trace_id = jobs.trace_id AND noted ->> 'name' = 'parked'
                                AND attributes ->> '{names.JOB}' = jobs.job_id
                        ) AS waits, jobs.trace_id AS trace
                    FROM tracing.jobs
                    WHERE status = 'parked' AND jobs.waiting_for ->> 'why' IN ('approval', 'needs_decision') AND {THESE}
                    ORDER BY waits DESC NULLS LAST LIMIT {SHOWN_MAX}""")
            ],
            unit="short",
            kind="table",
            width=16,
            columns=[TO_TRACE, TRACE_ID, Column("waits", unit="s")],
        ),
        Panel(
            "Queue lag",
            "Messages that wait for each consumer. EVENTS/tracing is how far traces and costs are behind.",
            [
                Metric(
                    newest("jetstream_consumer_num_pending", "stream_name", "consumer_name"),
                    "{{stream_name}}/{{consumer_name}}",
                )
            ],
            unit="short",
        ),
        Panel(
            "Ack pending",
            "Messages handed out and not acknowledged yet. At a consumer's limit the bus hands out no more.",
            [
                Metric(
                    newest("jetstream_consumer_num_ack_pending", "stream_name", "consumer_name"),
                    "{{stream_name}}/{{consumer_name}}",
                )
            ],
            unit="short",
        ),
        Panel(
            "Dead letters by code",
            "What services have put aside since they started, and why.",
            [Metric("sum by (stream, code) (wayline_dead_letters_total)", "{{stream}} {{code}}", instant=True)],
            unit="short",
            kind="bargauge",
            width=5,
        ),
        Panel(
            "Dead letters",
            "Messages put aside that the bus still keeps (30 days). `wayline dead-letters list` shows them.",
            [Metric('max(jetstream_stream_total_messages{stream_name="DEAD"})', "kept")],
            unit="short",
            kind="stat",
            width=3,
            alarm_above=1,
        ),
    ],
)

MONEY = Row(
    "Cost and tokens",
    [
        Panel(
            "Cost by model",
            "Dollars in this window, by model; a tool that costs money stands on its own.",
            [Sql(spent(MODEL, by="model"))],
            unit=DOLLARS,
            kind="bargauge",
            decimals=CENTS_OF_CENTS,
        ),
        Panel(
            "Cost by agent",
            "Dollars in this window, by agent.",
            [Sql(spent("agent", by="agent"))],
            unit=DOLLARS,
            kind="bargauge",
            decimals=CENTS_OF_CENTS,
        ),
        Panel(
            "Cost by day",
            "Dollars by day (UTC) and model. The window's first and last day may be cut.",
            [spent_by_day(MODEL)],
            unit=DOLLARS,
            decimals=CENTS_OF_CENTS,
            bars=True,
        ),
        Panel(
            "Ledger",
            "Dollars in the whole ledger, whatever the window (400 days).",
            [Metric(f"sum({newest('wayline_ledger_cost_usd', 'model', 'agent')})", "spent")],
            unit=DOLLARS,
            kind="stat",
            width=4,
            decimals=CENTS_OF_CENTS,
        ),
        Panel(
            "Calls of unknown price",
            "Calls in the ledger that no sum of dollars contains, because their price is unknown.",
            [Metric(f"sum({newest('wayline_ledger_unpriced_calls', 'model', 'agent')})", "calls")],
            unit="short",
            kind="stat",
            width=4,
            alarm_above=1,
        ),
        Panel(
            "Tokens per minute",
            "Tokens of model calls: what was read, caches included, and what was written, thinking included.",
            [
                Metric(f"sum(rate({TOKENS}_{kind}_tokens_total[$__rate_interval])) * 60", kind)
                for kind in ("input", "output")
            ],
            unit="cpm",
        ),
        Panel(
            "Cached and thought tokens per minute",
            "Of these: read from prompt caches, written into them, and thought.",
            [
                Metric(f"sum(rate({TOKENS}_{kind}_tokens_total[$__rate_interval])) * 60", legend)
                for kind, legend in (
                    ("cache_read_input", "read from caches"),
                    ("cache_write_input", "written into caches"),
                    ("reasoning_output", "thought"),
                )
            ],
            unit="cpm",
        ),
    ],
)

CALLS = Row(
    "Models and tools",
    [
        Panel(
            "Model call latency",
            "How long calls of each model take.",
            quantiles("gen_ai_client_operation_duration_seconds", "gen_ai_request_model"),
            unit="s",
        ),
        Panel(
            "Tool calls",
            "Calls of each tool and how they ended.",
            [
                Sql(
                    f"""SELECT $__timeGroupAlias(start, $__interval), concat({TOOL}, ' ', status) AS metric,
                        count(*) AS calls
                    FROM tracing.spans WHERE seq > 0 AND name LIKE 'execute_tool %' AND $__timeFilter(start)
                    GROUP BY 1, 2 ORDER BY 1, 2""",
                    over_time=True,
                )
            ],
            unit="short",
            bars=True,
        ),
        Panel(
            "Tool durations",
            "How long calls of each tool take.",
            quantiles("wayline_tool_seconds", "tool"),
            unit="s",
        ),
    ],
)

TRACES = Row(
    "Traces",
    [
        Panel(
            "Slowest traces",
            f"The {SHOWN_MAX} jobs of this window that worked longest; time spent parked is left out. "
            "The job's id leads to its trace.",
            [
                Sql(f"""SELECT root.start AS submitted, jobs.tenant, jobs.job_id AS job, jobs.agent, jobs.model,
                        jobs.status, root.duration_ms / 1000 AS worked, jobs.steps, jobs.tokens,
                        jobs.cost_usd::float8 AS cost, trace_id AS trace
                    FROM tracing.spans AS root JOIN tracing.jobs USING (trace_id)
                    WHERE root.seq > 0 AND root.parent_span_id IS NULL AND root.duration_ms IS NOT NULL
                        AND $__timeFilter(root.start) AND {chosen("jobs.tenant", "tenant")} AND {OF_AGENT}
                    ORDER BY worked DESC LIMIT {SHOWN_MAX}""")
            ],
            unit="short",
            kind="table",
            width=13,
            height=10,
            columns=[TO_TRACE, TRACE_ID, Column("worked", unit="s"), Column("cost", unit=DOLLARS)],
        ),
        Panel(
            "Dearest traces",
            f"The {SHOWN_MAX} jobs that cost most in this window; `unpriced` calls are in no sum. "
            "The job's id leads to its trace.",
            [
                Sql(f"""SELECT tenant, job_id AS job, agent, count(*) AS calls,
                        sum(input_tokens + output_tokens)::bigint AS tokens,
                        coalesce(sum(cost_usd), 0)::float8 AS cost,
                        count(*) FILTER (WHERE cost_usd IS NULL) AS unpriced,
                        (
                            SELECT trace_id FROM tracing.jobs
                            WHERE (jobs.tenant, jobs.job_id) = (ledger.tenant, ledger.job_id)
                        ) AS trace
                    FROM tracing.ledger WHERE NOT open AND $__timeFilter(at) AND {THESE}
                    GROUP BY tenant, job_id, agent ORDER BY cost DESC, tokens DESC LIMIT {SHOWN_MAX}""")
            ],
            unit="short",
            kind="table",
            width=11,
            height=10,
            columns=[TO_TRACE, TRACE_ID, Column("cost", unit=DOLLARS)],
        ),
    ],
)

OVERVIEW = Dashboard(
    uid="wayline-overview",
    title="Wayline",
    description="Jobs, queues, money, models, tools and traces. Generated by `make dashboards`.",
    rows=[JOBS, QUEUES, MONEY, CALLS, TRACES],
    variables=[TENANT, AGENT],
)
