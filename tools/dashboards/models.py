"""The models page of Grafana: how often, how fast and how well they answer, and what is done when they do not."""

from __future__ import annotations

from wayline.telemetry import names

from .page import Choice, Dashboard, Row, chosen
from .panels import Column, Metric, Panel, Sql
from .questions import CENTS_OF_CENTS, DOLLARS, OF_TENANT, TENANT, TOKENS, newest, per_minute, quantiles

CALLS = "gen_ai_client_operation_duration_seconds"
MODEL = Choice("model", "Model", labels=f"label_values({CALLS}_count, gen_ai_request_model)")
OF_MODEL = '{gen_ai_request_model=~"${model:regex}"}'
BY_MODEL = ("gen_ai_request_model",)
REQUESTED = f"attributes ->> '{names.GEN_AI_REQUEST_MODEL}'"
FIRST_S = f"(attributes ->> '{names.GEN_AI_FIRST_CHUNK}')::float8"

ANSWERS = Row(
    "Answers",
    [
        Panel(
            "Calls per minute",
            "Calls of each model, failed ones too.",
            [Metric(per_minute(f"{CALLS}_count", *BY_MODEL, where=OF_MODEL), "{{gen_ai_request_model}}")],
            unit="cpm",
        ),
        Panel(
            "Failures per minute",
            "Calls that brought no message, by provider and our own code.",
            [Metric(per_minute("wayline_model_failures_total", "provider", "code"), "{{provider}} {{code}}")],
            unit="cpm",
        ),
        Panel(
            "Failed calls",
            "The share of calls of conversations that brought no message.",
            [
                # Not of two counters: what appears with its first event has no rate then, and the share would be any.
                Sql(
                    f"""SELECT $__timeGroupAlias(start, $__interval), 'failed' AS metric,
                        (count(*) FILTER (WHERE status = 'error'))::float8 / count(*) AS value
                    FROM tracing.spans
                    WHERE seq > 0 AND name LIKE 'chat %' AND status <> 'open' AND {OF_TENANT} AND $__timeFilter(start)
                    GROUP BY 1 ORDER BY 1""",
                    over_time=True,
                )
            ],
            unit="percentunit",
            alarm_above=0.05,
        ),
        Panel("Latency", "How long calls take.", quantiles(CALLS, *BY_MODEL, where=OF_MODEL), unit="s"),
        Panel(
            "Time to first token",
            "From the request to the first word of the answer.",
            quantiles("gen_ai_client_operation_time_to_first_chunk_seconds", *BY_MODEL, where=OF_MODEL),
            unit="s",
        ),
        Panel(
            "Tokens per second",
            "Written tokens of a second of calls.",
            [
                Metric(
                    f"sum by (gen_ai_request_model) (rate({TOKENS}_output_tokens_total{OF_MODEL}[$__rate_interval]))"
                    f" / (sum by (gen_ai_request_model) (rate({CALLS}_sum{OF_MODEL}[$__rate_interval])) > 0)",
                    "{{gen_ai_request_model}}",
                )
            ],
            unit="short",
        ),
    ],
)

TROUBLE = Row(
    "When a model does not answer",
    [
        Panel(
            "Breakers opened",
            "Times since executors started that a model was left alone for failing.",
            [Metric("sum by (model) (wayline_breakers_opened_total)", "{{model}}", instant=True)],
            unit="short",
            kind="bargauge",
        ),
        Panel(
            "Jobs that another model took",
            "Fallbacks, escalations and other changes of the model, by cause.",
            [Metric(per_minute("wayline_jobs_rerouted_total", "cause"), "{{cause}}")],
            unit="cpm",
        ),
        Panel(
            "Failures by code",
            "Failed calls of the window, by model and what was wrong, exactly.",
            [
                Sql(f"""SELECT {REQUESTED} AS model, attributes ->> '{names.ERROR_TYPE}' AS error, count(*) AS calls
                    FROM tracing.spans
                    WHERE seq > 0 AND name LIKE 'chat %' AND status = 'error' AND {OF_TENANT} AND $__timeFilter(start)
                    GROUP BY 1, 2 ORDER BY calls DESC LIMIT 50""")
            ],
            unit="short",
            kind="table",
        ),
    ],
)

CACHES = Row(
    "Prompt caches and use",
    [
        Panel(
            "Cache hits by model",
            "The share of input tokens in the ledger that came from a prompt cache.",
            [
                Metric(
                    f"sum by (model) ({newest('wayline_ledger_cache_read_tokens', 'model', 'agent')})"
                    f" / (sum by (model) ({newest('wayline_ledger_input_tokens', 'model', 'agent')}) > 0)",
                    "{{model}}",
                )
            ],
            unit="percentunit",
            width=6,
        ),
        Panel(
            "Cache breaks",
            "Prompts since executors started that did not continue the one before, by what broke them.",
            [Metric("sum by (cause) (wayline_cache_breaks_total)", "{{cause}}", instant=True)],
            unit="short",
            kind="bargauge",
            width=6,
        ),
        Panel(
            "Models of the window",
            "Calls of conversations: how many failed, how long they took, what they cost.",
            [
                Sql(f"""SELECT {REQUESTED} AS model, count(*) AS calls,
                        (count(*) FILTER (WHERE status = 'error'))::float8 / count(*) AS failed,
                        percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_ms) / 1000 AS p50,
                        percentile_cont(0.95) WITHIN GROUP (ORDER BY duration_ms) / 1000 AS p95,
                        percentile_cont(0.5) WITHIN GROUP (ORDER BY {FIRST_S}) AS "first token",
                        coalesce(sum(cost_usd), 0)::float8 AS cost
                    FROM tracing.spans
                    WHERE seq > 0 AND name LIKE 'chat %' AND {chosen("tenant", "tenant")} AND $__timeFilter(start)
                    GROUP BY 1 ORDER BY calls DESC LIMIT 50""")
            ],
            unit="short",
            kind="table",
            width=12,
            columns=[
                Column("failed", unit="percentunit"),
                *(Column(name, unit="s") for name in ("p50", "p95", "first token")),
                Column("cost", unit=DOLLARS),
            ],
            decimals=CENTS_OF_CENTS,
        ),
    ],
)

MODELS = Dashboard(
    uid="wayline-models",
    title="Wayline models",
    description="How often, how fast and how well models answer. Generated by `make dashboards`.",
    rows=[ANSWERS, TROUBLE, CACHES],
    variables=[TENANT, MODEL],
)
