"""Every Prometheus metric of Wayline, declared once; labels are bounded: never a job, never a raw subject.

What tenants name (agents, tools, budgets) goes through `bounded_labels`, a model's name through `wayline.llm.labels`.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_LONG_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600)

messages_handled = Counter(
    "wayline_messages_handled_total", "Messages a service has handled.", ["service", "subject", "outcome"]
)
handling_seconds = Histogram(
    "wayline_message_handling_seconds", "How long handling took.", ["service", "subject"], buckets=_SECONDS
)
waiting = Counter(
    "wayline_messages_waited_total", "Waits of a message for something that was away or full.", ["service", "subject"]
)
messages_published = Counter("wayline_messages_published_total", "Messages published.", ["service", "subject"])
signals_forgotten = Counter(
    "wayline_signals_forgotten_total", "Signals forgotten: of ended jobs, or beyond a tenant's share.", ["why"]
)
dead_letters = Counter("wayline_dead_letters_total", "Messages put aside.", ["stream", "consumer", "code"])
tickets_waiting = Gauge(
    "wayline_tickets_waiting", "Run tickets that wait for their tenant's turn in a lane that tenants share.", ["lane"]
)
turns_given = Counter("wayline_turns_given_total", "Run tickets that were given their tenant's turn.")
webhook_tries = Counter(
    "wayline_webhook_tries_total", "Tries of webhook deliveries, by what came of them.", ["outcome"]
)
webhooks_disabled = Counter("wayline_webhooks_disabled_total", "Webhooks that were disabled for their failures.")
foreign_messages = Counter(
    "wayline_foreign_messages_total", "Messages on a log's subject that are no records of ours.", ["stream"]
)
bus_errors = Counter("wayline_bus_errors_total", "What the bus connection complained about.", ["service", "kind"])
bus_connected = Gauge("wayline_bus_connected", "1 while the service holds its bus connection.", ["service"])
need_met = Gauge(
    "wayline_need_met", "1 while what the service needs took a write when last asked.", ["service", "need"]
)
loop_lag_seconds = Histogram(
    "wayline_loop_lag_seconds", "How much later than asked an event loop goes on.", ["service"], buckets=_SECONDS
)
drift = Counter(
    "wayline_tracing_drift_total",
    "Jobs whose tables differed from their log, by how and what came of it.",
    ["drift", "outcome"],
)
drift_lag = Gauge("wayline_tracing_drift_lag", "Records that were stored and are not compared with their log yet.")
spans_dropped = Counter("wayline_spans_dropped_total", "Spans lost before export.", ["service", "where"])

http_requests = Counter(
    "wayline_http_requests_total", "HTTP requests answered, by route template.", ["method", "route", "status"]
)
http_seconds = Histogram(
    "wayline_http_request_seconds",
    "From an HTTP request to the end of its answer.",
    ["method", "route"],
    buckets=_SECONDS,
)
event_streams = Gauge("wayline_http_event_streams", "Clients that follow a job right now.")

jobs_ended = Counter("wayline_jobs_ended_total", "Jobs that reached their end.", ["outcome", "agent"])
job_seconds = Histogram("wayline_job_seconds", "From submission to the end.", ["outcome"], buckets=_LONG_SECONDS)
job_queue_seconds = Histogram(
    "wayline_job_queue_seconds",
    "From submission until an executor first takes the job.",
    ["lane"],
    buckets=_LONG_SECONDS,
)
jobs_in_flight = Gauge("wayline_jobs_in_flight", "Jobs this process holds.", ["lane"])
jobs_fenced = Counter("wayline_jobs_fenced_total", "Times an executor found that its job had moved on.", ["where"])
unknown_events = Counter("wayline_unknown_events_total", "Events of a type this build does not know.", ["service"])
tool_calls = Counter("wayline_tool_calls_total", "Tool calls by outcome.", ["tool", "effect", "status"])
searches_degraded = Counter(
    "wayline_searches_degraded_total", "Searches that left out what could not answer.", ["leg", "reason"]
)
tool_seconds = Histogram("wayline_tool_seconds", "How long a tool took.", ["tool"], buckets=_LONG_SECONDS)
_TOKENS_OF = ["gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_modality"]
gen_ai_input_tokens = Counter(
    "gen_ai_client_inference_usage_input_tokens_total",
    "Tokens of prompts, those of caches among them.",
    _TOKENS_OF,
)
gen_ai_output_tokens = Counter(
    "gen_ai_client_inference_usage_output_tokens_total",
    "Tokens that models wrote, those of their thinking among them.",
    _TOKENS_OF,
)
gen_ai_cache_read_tokens = Counter(
    "gen_ai_client_inference_usage_cache_read_input_tokens_total",
    "Tokens of prompts that came from a provider's cache.",
    _TOKENS_OF,
)
gen_ai_cache_write_tokens = Counter(
    "gen_ai_client_inference_usage_cache_write_input_tokens_total",
    "Tokens of prompts that were written into a provider's cache.",
    _TOKENS_OF,
)
gen_ai_reasoning_tokens = Counter(
    "gen_ai_client_inference_usage_reasoning_output_tokens_total",
    "Tokens of models' thinking.",
    _TOKENS_OF,
)
gen_ai_seconds = Histogram(
    "gen_ai_client_operation_duration_seconds",
    "Model calls.",
    ["gen_ai_provider_name", "gen_ai_request_model"],
    buckets=_LONG_SECONDS,
)
gen_ai_first_chunk_seconds = Histogram(
    "gen_ai_client_operation_time_to_first_chunk_seconds",
    "From a model call's request to the first word of its answer.",
    ["gen_ai_provider_name", "gen_ai_request_model"],
    buckets=_LONG_SECONDS,
)
cache_read_tokens = Counter(
    "wayline_cache_read_tokens_total", "Input tokens that providers read from their caches.", ["provider", "model"]
)
cache_breaks = Counter(
    "wayline_cache_breaks_total", "Prompts that did not continue the one before, by what broke them.", ["cause"]
)
approvals_waiting = Gauge(
    "wayline_approvals_waiting", "Approvals that parked jobs wait for, and answers that tools' servers wait for."
)
approvals_decided = Counter(
    "wayline_approvals_decided_total", "Decisions on approvals: approved, denied, or expired.", ["outcome"]
)
approval_seconds = Histogram(
    "wayline_approval_seconds",
    "From the question to a person's decision, or to its expiry.",
    ["outcome"],
    buckets=(1, 10, 60, 300, 900, 3_600, 14_400, 86_400, 259_200, 604_800),
)
programs_resumed = Counter(
    "wayline_programs_resumed_total",
    "Programs that went on after a stop: from a snapshot, or again from their recorded results.",
    ["how"],
)
model_failures = Counter(
    "wayline_model_failures_total", "Model calls that brought no message, by our own codes.", ["provider", "code"]
)
breakers_opened = Counter("wayline_breakers_opened_total", "Times a model was left alone for failing.", ["model"])
jobs_rerouted = Counter("wayline_jobs_rerouted_total", "Times another model went on with a job.", ["cause"])
cost_ratio = Histogram(
    "wayline_job_cost_to_predicted_ratio",
    "What an ended job cost, of what its route predicted: 1 is exactly that.",
    ["tier"],
    buckets=(0.1, 0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2, 4, 10),
)
tool_tokens_saved = Counter(
    "wayline_job_tool_tokens_saved_total",
    "Estimated definition tokens that deferred tools spared the calls of ended jobs.",
    ["agent"],
)
cost_usd = Gauge("wayline_ledger_cost_usd", "Dollars in the ledger, from Postgres at each scrape.", ["model", "agent"])
calls_unpriced = Gauge(
    "wayline_ledger_unpriced_calls", "Calls in the ledger whose price nobody knows.", ["model", "agent"]
)
calls_unsettled = Gauge(
    "wayline_ledger_unsettled_calls", "Calls in the ledger whose usage never arrived.", ["model", "agent"]
)
cache_saved_usd = Gauge("wayline_ledger_cache_saved_usd", "Dollars that prompt caches saved.", ["model", "agent"])
cache_lost_usd = Gauge(
    "wayline_ledger_cache_lost_usd", "Dollars that were written into prompt caches in vain.", ["model", "agent"]
)
ledger_input_tokens = Gauge("wayline_ledger_input_tokens", "Input tokens in the ledger.", ["model", "agent"])
ledger_cache_read_tokens = Gauge(
    "wayline_ledger_cache_read_tokens", "Input tokens in the ledger that came from a prompt cache.", ["model", "agent"]
)
queue_pending = Gauge("jetstream_consumer_num_pending", "Messages waiting.", ["stream_name", "consumer_name"])
queue_ack_pending = Gauge(
    "jetstream_consumer_num_ack_pending", "Messages out and not acked.", ["stream_name", "consumer_name"]
)
queue_redelivered = Gauge(
    "jetstream_consumer_num_redelivered", "Messages delivered more than once.", ["stream_name", "consumer_name"]
)
stream_messages = Gauge("jetstream_stream_total_messages", "Messages in a stream.", ["stream_name"])
stream_bytes = Gauge("jetstream_stream_total_bytes", "Bytes in a stream.", ["stream_name"])
stream_full = Gauge(
    "jetstream_stream_full_ratio", "How full a stream is by the limit that is nearest, 0 to 1.", ["stream_name"]
)
standbys = Gauge("wayline_postgres_standbys", "Standbys that are connected to Postgres, where its owner may see them.")
standby_behind = Gauge(
    "wayline_postgres_standby_behind_bytes",
    "Bytes of the write-ahead log that a standby has not replayed.",
    ["standby"],
)
budget_usd = Gauge(
    "wayline_budget_usd",
    "A budget's dollars in its present window: limit, spent, reserved, unsettled.",
    ["tenant", "budget", "figure"],
)
budgets_unshown = Gauge(
    "wayline_budgets_unshown", "Budgets whose figures are not shown: others are nearer to their limit."
)
budget_alerts = Counter(
    "wayline_budget_alerts_total", "Thresholds that budgets have reached, once a window.", ["tenant", "budget"]
)
schedule_firings = Counter(
    "wayline_schedule_firings_total", "Moments of schedules that were decided: fired, skipped.", ["outcome"]
)
