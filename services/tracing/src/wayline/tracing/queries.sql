-- name: put_jobs
INSERT INTO jobs AS old (
    tenant, job_id, seq, trace_id, status, agent, agent_version, session_id, user_id, provider, model, tier,
    route_reason, estimated_cost_usd, steps, usage, tokens, cost_usd, costs, answer, partial, reason, citations,
    error_code, error_message, waiting_for, created_at, ended_at, input, fingerprint, schedule,
    lane, beyond, tags, words
)
SELECT
    tenant, job_id, seq, trace_id, status, agent, agent_version, session_id, user_id, provider, model, tier,
    route_reason, estimated_cost_usd, steps, usage::jsonb, tokens, cost_usd, costs::jsonb, answer, partial, reason,
    citations::jsonb, error_code, error_message, waiting_for::jsonb, created_at, ended_at, input,
    fingerprint, schedule::jsonb, lane, beyond::jsonb, tags, array_to_tsvector(words)
FROM unnest($1::job_row_7[])
ON CONFLICT (tenant, job_id) DO UPDATE SET
    seq = excluded.seq, status = excluded.status, agent = excluded.agent, agent_version = excluded.agent_version,
    session_id = excluded.session_id, user_id = excluded.user_id, provider = excluded.provider,
    model = excluded.model, tier = excluded.tier, route_reason = excluded.route_reason,
    estimated_cost_usd = excluded.estimated_cost_usd, steps = excluded.steps, usage = excluded.usage,
    tokens = excluded.tokens, cost_usd = excluded.cost_usd, costs = excluded.costs, answer = excluded.answer,
    partial = excluded.partial, reason = excluded.reason, citations = excluded.citations,
    error_code = excluded.error_code, error_message = excluded.error_message, waiting_for = excluded.waiting_for,
    created_at = excluded.created_at, ended_at = excluded.ended_at, input = excluded.input,
    fingerprint = excluded.fingerprint, schedule = excluded.schedule, lane = excluded.lane, beyond = excluded.beyond,
    tags = CASE WHEN old.tags_added IS NULL THEN excluded.tags
        ELSE merged_tags(excluded.tags, old.tags_added, old.tags_removed) END,
    words = CASE WHEN old.tags_added IS NULL THEN excluded.words
        ELSE words_with_tags(excluded.words, merged_tags(excluded.tags, old.tags_added, old.tags_removed)) END
WHERE old.seq < excluded.seq
RETURNING tenant, job_id

-- name: note_finished
INSERT INTO deliveries (tenant, follower, job_id)
SELECT followers.tenant, followers.name, ended.job_id
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS ended (tenant, job_id, at)
JOIN followers ON followers.tenant = ended.tenant AND followers.since <= ended.at
ON CONFLICT DO NOTHING

-- name: put_steps
INSERT INTO steps AS old (
    tenant, job_id, step, seq, started_at, thought, tool, input, output, calls, duration_ms, status
)
SELECT tenant, job_id, step, seq, started_at, thought, tool, input::jsonb, output, calls::jsonb, duration_ms, status
FROM unnest($1::step_row[])
ON CONFLICT (tenant, job_id, step) DO UPDATE SET
    seq = excluded.seq, started_at = excluded.started_at, thought = excluded.thought, tool = excluded.tool,
    input = excluded.input, output = excluded.output, calls = excluded.calls, duration_ms = excluded.duration_ms,
    status = excluded.status
WHERE old.seq < excluded.seq

-- name: put_ledger
INSERT INTO ledger AS old (
    tenant, job_id, attempt_id, seq, step, kind, provider, model, tool, agent, user_id, session_id, input_tokens,
    cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, cost_usd, open,
    settled, at, purpose, saved_usd, lower_usd, upper_usd, cache_break
)
SELECT * FROM unnest($1::ledger_row_2[])
ON CONFLICT (tenant, job_id, attempt_id) DO UPDATE SET
    seq = excluded.seq, provider = excluded.provider, model = excluded.model, tool = excluded.tool,
    agent = excluded.agent, user_id = excluded.user_id, session_id = excluded.session_id,
    input_tokens = excluded.input_tokens, cache_read_tokens = excluded.cache_read_tokens,
    cache_write_5m_tokens = excluded.cache_write_5m_tokens, cache_write_1h_tokens = excluded.cache_write_1h_tokens,
    output_tokens = excluded.output_tokens, reasoning_tokens = excluded.reasoning_tokens,
    cost_usd = excluded.cost_usd, open = excluded.open, settled = excluded.settled, at = excluded.at,
    purpose = excluded.purpose, saved_usd = excluded.saved_usd, lower_usd = excluded.lower_usd,
    upper_usd = excluded.upper_usd, cache_break = excluded.cache_break
WHERE old.seq < excluded.seq

-- name: put_spans
INSERT INTO spans AS old (
    trace_id, span_id, start, tenant, parent_span_id, anchor, service, name, kind, duration_ms, status, attributes,
    links, events, usage, cost_usd, seq
)
SELECT
    trace_id, span_id, start, tenant, parent_span_id, anchor, service, name, kind, duration_ms, status,
    attributes::jsonb, links::jsonb, events::jsonb, usage::jsonb, cost_usd, seq
FROM unnest($1::span_row[])
ON CONFLICT (trace_id, span_id, start) DO UPDATE SET
    tenant = excluded.tenant, parent_span_id = excluded.parent_span_id, anchor = excluded.anchor,
    service = excluded.service, name = excluded.name, kind = excluded.kind, duration_ms = excluded.duration_ms,
    status = excluded.status, attributes = excluded.attributes, links = excluded.links, events = excluded.events,
    usage = excluded.usage, cost_usd = excluded.cost_usd, seq = excluded.seq
WHERE old.seq < excluded.seq

-- name: progress_of_jobs
-- One look into the index for each: a join that was planned while the table was empty scans it, whatever it grows to.
SELECT tenant, job_id, (
    SELECT seq FROM jobs WHERE jobs.tenant = asked.tenant AND jobs.job_id = asked.job_id
) AS seq
FROM unnest($1::text[], $2::text[]) AS asked (tenant, job_id)

-- name: tenants_of_traces
SELECT trace_id, (SELECT tenant FROM jobs WHERE jobs.trace_id = asked.trace_id LIMIT 1) AS tenant
FROM unnest($1::text[]) AS asked (trace_id)

-- name: job
SELECT * FROM jobs WHERE tenant = $1 AND job_id = $2

-- name: job_of_trace
-- Jobs that others started are of the same trace: the first of them is its root.
SELECT * FROM jobs WHERE tenant = $1 AND trace_id = $2 ORDER BY created_at, job_id LIMIT 1

-- name: job_totals
SELECT
    count(*) AS calls,
    coalesce(sum(input_tokens + output_tokens), 0)::bigint AS tokens,
    coalesce(sum(cost_usd), 0) AS cost_usd,
    bool_or(settled AND cost_usd IS NULL) AS unknown,
    count(*) FILTER (WHERE NOT settled) AS unsettled
FROM ledger
WHERE tenant = $1 AND job_id = ANY ($2) AND NOT open

-- name: spans_of_trace
-- A job's leaves may have come before its log did: they have no tenant ('-') until the trace is asked for.
-- `|| ''` keeps the index of tenants out of the plan: of a partition without statistics it would read all spans of one.
SELECT
    span_id, parent_span_id, anchor, name, service, kind, start, duration_ms, status, attributes::text AS attributes,
    links::text AS links, events::text AS events, usage::text AS usage, cost_usd,
    CASE WHEN seq > 0 THEN 'log' ELSE 'exported' END AS source
FROM spans
WHERE trace_id = $1 AND tenant || '' = ANY ($2)
ORDER BY seq = 0, start
LIMIT $3

-- name: joined_spans
-- Of traces of the tenant's own programs: what has no parent there hangs under the span of the job that it joins.
-- A trace that is a job's own stays in that job's tree. $4: for a key of one user, the traces that join no other user's job.
SELECT
    span_id, parent_span_id, joined.under AS anchor, name, service, kind, start, duration_ms, status,
    attributes::text AS attributes, links::text AS links, events::text AS events, usage::text AS usage, cost_usd,
    'joined' AS source
FROM joined_traces AS joined
JOIN spans ON spans.trace_id = joined.trace_id AND spans.tenant || '' = joined.tenant
WHERE joined.tenant = $1 AND joins = $2
    AND NOT EXISTS (SELECT FROM jobs WHERE jobs.trace_id = joined.trace_id AND jobs.tenant = $1)
    AND ($4::text IS NULL OR NOT EXISTS (
        SELECT FROM joined_traces AS other JOIN jobs ON jobs.trace_id = other.joins AND jobs.tenant = $1
        WHERE other.tenant = $1 AND other.trace_id = joined.trace_id AND jobs.user_id IS DISTINCT FROM $4
    ))
ORDER BY start
LIMIT $3

-- name: take_room_for_spans
-- Counts what is tried; returns how many of these there is room for.
INSERT INTO received_spans AS had (tenant, hour, spans) VALUES ($1, date_trunc('hour', now()), $2::bigint)
ON CONFLICT (tenant, hour) DO UPDATE SET spans = had.spans + excluded.spans
RETURNING least($2, $3::bigint - (spans - $2))::int

-- name: join_traces
INSERT INTO joined_traces (tenant, joins, trace_id, under)
SELECT $1, $2, $3, $4
WHERE EXISTS (SELECT FROM joined_traces WHERE tenant = $1 AND joins = $2 AND trace_id = $3)
    OR (SELECT count(*) FROM joined_traces WHERE tenant = $1 AND joins = $2) < $5::int
-- Kept for as long as its newest spans: noted once a day.
ON CONFLICT (tenant, joins, trace_id) DO UPDATE SET at = now() WHERE joined_traces.at < now() - interval '1 day'

-- name: span_names
-- Of the tenant's newest: to find as many of a user who has few would read all that there are.
SELECT service, name, kind, count(*) AS spans
FROM (SELECT * FROM spans WHERE tenant = $1 ORDER BY start DESC LIMIT 20000) AS newest
WHERE $2::text IS NULL OR EXISTS (
    SELECT FROM jobs WHERE jobs.trace_id = newest.trace_id AND jobs.tenant = newest.tenant AND jobs.user_id = $2
)
GROUP BY 1, 2, 3
ORDER BY spans DESC, 1, 2
LIMIT 1000

-- name: steps_of_job
SELECT * FROM steps WHERE tenant = $1 AND job_id = $2 ORDER BY step

-- name: open_jobs
-- Jobs that have not ended have no words yet: the index of those is small.
SELECT status, lane, waiting_for ->> 'why' AS waiting_for, count(*) AS jobs, min(created_at) AS oldest_at
FROM jobs
WHERE tenant = $1 AND words IS NULL AND ended_at IS NULL
GROUP BY 1, 2, 3
ORDER BY oldest_at

-- name: jobs_ended_lately
-- The longer of two windows has the shorter one in it: one reading is enough for both.
SELECT
    status, created_at >= now() - make_interval(hours => $2) AS is_recent, count(*) AS jobs,
    coalesce(sum(estimated_cost_usd) FILTER (WHERE cost_usd IS NOT NULL), 0) AS predicted_usd,
    coalesce(sum(cost_usd) FILTER (WHERE estimated_cost_usd IS NOT NULL), 0) AS actual_usd
FROM jobs
WHERE tenant = $1 AND created_at >= now() - make_interval(hours => $3) AND ended_at IS NOT NULL
GROUP BY 1, 2

-- name: calls_paid_lately
SELECT
    at >= now() - make_interval(hours => $2) AS is_recent, coalesce(sum(cost_usd), 0) AS cost_usd,
    count(*) FILTER (WHERE settled AND cost_usd IS NULL) AS calls_unknown
FROM ledger
WHERE tenant = $1 AND at >= now() - make_interval(hours => $3) AND NOT open
GROUP BY 1

-- name: tool_call_counts
-- The row without a tool counts the jobs of all of them.
SELECT called ->> 'tool' AS tool, count(*) AS calls, count(DISTINCT job_id) AS jobs
FROM steps, jsonb_array_elements(calls) AS called
WHERE tenant = $1 AND started_at >= $3 AND called ->> 'tool' = ANY ($2::text[])
GROUP BY GROUPING SETS ((called ->> 'tool'), ())
ORDER BY 1

-- name: tool_figures
-- One row for each way in which calls ended, and one for all of them together: that one has no status.
SELECT status, error, count(*) AS calls, count(DISTINCT job_id) AS jobs,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS p50_ms,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY ms) AS p95_ms
FROM (
    SELECT job_id, called ->> 'status' AS status, called ->> 'error' AS error,
        (called ->> 'duration_ms')::double precision AS ms
    FROM (
        SELECT job_id, calls FROM steps WHERE tenant = $1 AND started_at >= $3 ORDER BY started_at DESC LIMIT $4
    ) AS newest, jsonb_array_elements(calls) AS called
    WHERE CASE WHEN called ->> 'tool' = 'use_tool' THEN called #>> '{input,name}' ELSE called ->> 'tool' END = $2
) AS made
GROUP BY GROUPING SETS ((status, error), ())

-- name: figures_of_tools
-- A name that no tool has comes from a model.
SELECT tool, count(*) AS calls, count(*) FILTER (WHERE status = 'failed') AS failed,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS p50_ms,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY ms) AS p95_ms
FROM (
    SELECT CASE WHEN called ->> 'tool' = 'use_tool' THEN called #>> '{input,name}' ELSE called ->> 'tool' END AS tool,
        called ->> 'status' AS status, (called ->> 'duration_ms')::double precision AS ms
    FROM (
        SELECT calls FROM steps WHERE tenant = $1 AND started_at >= $2 ORDER BY started_at DESC LIMIT $3
    ) AS newest, jsonb_array_elements(calls) AS called
) AS made
WHERE length(tool) BETWEEN 1 AND 128
GROUP BY tool
ORDER BY calls DESC, tool
LIMIT $4

-- name: tools_of_agents
-- A row without a tool counts the jobs that were looked at. A call through `use_tool` is one of the tool that it names.
-- A name that no tool has comes from a model. Steps of older builds have no error.
WITH looked AS MATERIALIZED (
    SELECT agent, job_id
    FROM (
        SELECT agent, job_id, row_number() OVER (PARTITION BY agent ORDER BY created_at DESC, job_id DESC) AS place
        FROM jobs
        WHERE tenant = $1 AND created_at >= $3 AND ended_at IS NOT NULL AND steps > 0
            AND ($2::text IS NULL OR agent = $2)
    ) AS ranked
    WHERE place <= $4
)
SELECT agent, NULL AS tool, count(*) AS jobs FROM looked GROUP BY agent
UNION ALL
SELECT agent, tool, count(DISTINCT job_id) AS jobs
FROM (
    SELECT looked.agent, looked.job_id, CASE WHEN called ->> 'tool' = 'use_tool' THEN called #>> '{input,name}'
        ELSE called ->> 'tool' END AS tool
    FROM looked
    JOIN steps ON steps.tenant = $1 AND steps.job_id = looked.job_id, jsonb_array_elements(calls) AS called
    WHERE called ->> 'error' IS DISTINCT FROM 'unknown_tool'
) AS used
WHERE tool IS NOT NULL
GROUP BY agent, tool
ORDER BY agent, jobs DESC, tool NULLS FIRST

-- name: parked_agents
SELECT DISTINCT agent, agent_version FROM jobs
WHERE tenant = $1 AND status = 'parked' AND agent_version IS NOT NULL
ORDER BY agent, agent_version
LIMIT $2

-- name: parked_jobs
SELECT job_id, agent, agent_version, waiting_for ->> 'why' AS why, waits_for_tool, count(*) OVER () AS total
FROM (
    SELECT *, coalesce(
        waiting_for ->> 'tool' = ANY ($2::text[]) OR EXISTS (
            SELECT FROM jsonb_path_query(waiting_for, '$.approvals[*].tool') AS asked (tool)
            WHERE asked.tool #>> '{}' = ANY ($2)
        ), false) AS waits_for_tool
    FROM jobs WHERE tenant = $1 AND status = 'parked'
) AS parked
WHERE waits_for_tool
    OR (agent, agent_version) IN (SELECT * FROM unnest($3::text[], $4::integer[]))
ORDER BY created_at DESC, job_id DESC
LIMIT $5

-- name: recorded_calls
-- The first call of a page is in it whatever its size. The comparison without `number` is what the index answers.
SELECT started_at, job_id, step, number, call, tool, arguments, error, more
FROM (
    SELECT *, sum(octet_length(arguments)) OVER place - octet_length(arguments) AS bytes_before,
        lead(true, 1, false) OVER place OR count(*) OVER () = $8 AS more
    FROM (
        SELECT started_at, job_id, step, number, called ->> 'call' AS call, called ->> 'tool' AS tool,
            (called -> 'input')::text AS arguments, called ->> 'error' AS error
        FROM steps, jsonb_array_elements(calls) WITH ORDINALITY AS each_call (called, number)
        WHERE tenant = $1 AND started_at >= $3 AND called ->> 'tool' = ANY ($2::text[])
            AND ($4::timestamptz IS NULL OR (
                (started_at, job_id, step) <= ($4, $5::text, $6::integer)
                AND (started_at, job_id, step, number) < ($4, $5, $6, $7::bigint)
            ))
        ORDER BY started_at DESC, job_id DESC, step DESC, number DESC
        LIMIT $8
    ) AS newest
    WINDOW place AS (ORDER BY started_at DESC, job_id DESC, step DESC, number DESC)
) AS measured
WHERE bytes_before < $9
ORDER BY started_at DESC, job_id DESC, step DESC, number DESC

-- name: queue_places
SELECT job_id, lane, position, queued
FROM (
    SELECT job_id, lane, row_number() OVER (PARTITION BY lane ORDER BY created_at, job_id) AS position,
        count(*) OVER (PARTITION BY lane) AS queued
    FROM jobs WHERE tenant = $1 AND status = 'queued'
) AS waiting
WHERE job_id = ANY ($2::text[])

-- name: costs
-- The first row is the total of all groups, also of those that are cut off.
WITH groups AS MATERIALIZED (
    SELECT
        CASE WHEN 'model' = ANY ($2::text[]) THEN coalesce(ledger.model, '-') END AS model,
        CASE WHEN 'agent' = ANY ($2) THEN ledger.agent END AS agent,
        CASE WHEN 'day' = ANY ($2) THEN to_char(at AT TIME ZONE $5::text, 'YYYY-MM-DD') END AS day,
        CASE WHEN 'tool' = ANY ($2) THEN coalesce(tool, '-') END AS tool,
        CASE WHEN 'user' = ANY ($2) THEN coalesce(ledger.user_id, '-') END AS "user",
        CASE WHEN 'tenant' = ANY ($2) THEN ledger.tenant END AS tenant,
        CASE WHEN 'session' = ANY ($2) THEN coalesce(ledger.session_id, '-') END AS session,
        CASE WHEN 'job' = ANY ($2) THEN ledger.job_id END AS job,
        CASE WHEN 'kind' = ANY ($2) THEN kind END AS kind,
        CASE WHEN 'hour' = ANY ($2) THEN to_char(at AT TIME ZONE $5, 'YYYY-MM-DD"T"HH24:00') END AS hour,
        CASE WHEN 'provider' = ANY ($2) THEN coalesce(ledger.provider, '-') END AS provider,
        CASE WHEN 'purpose' = ANY ($2) THEN coalesce(purpose, '-') END AS purpose,
        CASE WHEN 'tier' = ANY ($2) THEN coalesce(jobs.tier, '-') END AS tier,
        CASE WHEN 'schedule' = ANY ($2) THEN coalesce(jobs.schedule ->> 'schedule', '-') END AS schedule,
        CASE WHEN 'cache_break' = ANY ($2) THEN coalesce(cache_break, '-') END AS cache_break,
        CASE WHEN 'key' = ANY ($2) THEN coalesce(jobs.beyond #>> '{submitted_by,key_id}', '-') END AS key,
        CASE WHEN 'version' = ANY ($2) THEN coalesce(jobs.agent_version::text, '-') END AS version,
        CASE WHEN 'label' = ANY ($2) THEN coalesce(jobs.beyond ->> 'agent_label', '-') END AS label,
        tag,
        count(*) AS calls,
        count(*) FILTER (WHERE settled AND ledger.cost_usd IS NULL) AS calls_unknown,
        count(*) FILTER (WHERE NOT settled) AS calls_unsettled,
        sum(input_tokens)::bigint AS input,
        sum(cache_read_tokens)::bigint AS cache_read,
        sum(cache_write_5m_tokens)::bigint AS cache_write_5m,
        sum(cache_write_1h_tokens)::bigint AS cache_write_1h,
        sum(output_tokens)::bigint AS output,
        sum(reasoning_tokens)::bigint AS reasoning,
        coalesce(sum(ledger.cost_usd), 0) AS cost_usd,
        coalesce(sum(saved_usd) FILTER (WHERE saved_usd > 0), 0) AS saved_usd,
        coalesce(-sum(saved_usd) FILTER (WHERE saved_usd < 0), 0) AS lost_usd,
        coalesce(sum(lower_usd) FILTER (WHERE NOT settled), 0) AS unsettled_lower_usd,
        CASE WHEN bool_or(NOT settled AND upper_usd IS NULL) THEN NULL
            ELSE coalesce(sum(upper_usd) FILTER (WHERE NOT settled), 0) END AS unsettled_upper_usd,
        -- Once a job: with its first call.
        sum(jobs.estimated_cost_usd) FILTER (WHERE attempt_id = $1 || '/' || ledger.job_id || '/1/m1') AS predicted_usd
    FROM ledger
    LEFT JOIN jobs ON jobs.tenant = $1 AND jobs.job_id = ledger.job_id
    LEFT JOIN LATERAL (
        SELECT unnest(CASE WHEN cardinality(jobs.tags) > 0 THEN jobs.tags ELSE ARRAY['-'] END) AS tag
        WHERE 'tag' = ANY ($2)
    ) AS tagged ON true
    WHERE ledger.tenant = $1 AND NOT open AND ($3::timestamptz IS NULL OR at >= $3)
        AND ($6::timestamptz IS NULL OR at < $6)
        AND ($7::text IS NULL OR ledger.agent = $7)
        AND ($8::text IS NULL OR $8 IN (ledger.model, ledger.provider || '/' || ledger.model))
        AND ($9::text IS NULL OR tool = $9)
        AND ($10::text IS NULL OR ledger.user_id = $10)
        AND ($11::text IS NULL OR ledger.session_id = $11)
        AND ($12::text IS NULL OR ledger.job_id = $12)
        AND ($13::text[] IS NULL OR jobs.tags @> $13)
        AND ($14::int IS NULL OR jobs.agent_version = $14)
        AND ($15::text IS NULL OR jobs.beyond ->> 'agent_label' = $15)
        -- Asked once, of no row: an unknown zone is refused also where no day is asked for, or nothing was spent.
        AND now() AT TIME ZONE $5 IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
)
(
    SELECT
        true AS is_total, count(*) AS groups,
        NULL AS model, NULL AS agent, NULL AS day, NULL AS tool, NULL AS "user", NULL AS tenant, NULL AS session,
        NULL AS job, NULL AS kind, NULL AS hour, NULL AS provider, NULL AS purpose, NULL AS tier, NULL AS schedule,
        NULL AS cache_break, NULL AS key, NULL AS version, NULL AS label, NULL AS tag,
        sum(calls)::bigint AS calls, sum(calls_unknown)::bigint AS calls_unknown,
        sum(calls_unsettled)::bigint AS calls_unsettled, sum(input)::bigint AS input,
        sum(cache_read)::bigint AS cache_read, sum(cache_write_5m)::bigint AS cache_write_5m,
        sum(cache_write_1h)::bigint AS cache_write_1h, sum(output)::bigint AS output,
        sum(reasoning)::bigint AS reasoning, sum(cost_usd) AS cost_usd, sum(saved_usd) AS saved_usd,
        sum(lost_usd) AS lost_usd, sum(unsettled_lower_usd) AS unsettled_lower_usd,
        CASE WHEN bool_or(unsettled_upper_usd IS NULL) THEN NULL ELSE sum(unsettled_upper_usd) END
            AS unsettled_upper_usd,
        sum(predicted_usd) AS predicted_usd
    FROM groups
    HAVING count(*) > 0
)
UNION ALL
(SELECT false, 1, * FROM groups ORDER BY cost_usd DESC, calls DESC LIMIT $4)
ORDER BY is_total DESC, cost_usd DESC, calls DESC

-- name: session_costs
SELECT
    count(*) AS calls,
    count(*) FILTER (WHERE settled AND cost_usd IS NULL) AS calls_unknown,
    count(*) FILTER (WHERE NOT settled) AS calls_unsettled,
    sum(input_tokens)::bigint AS input,
    sum(cache_read_tokens)::bigint AS cache_read,
    sum(cache_write_5m_tokens)::bigint AS cache_write_5m,
    sum(cache_write_1h_tokens)::bigint AS cache_write_1h,
    sum(output_tokens)::bigint AS output,
    sum(reasoning_tokens)::bigint AS reasoning,
    coalesce(sum(cost_usd), 0) AS cost_usd,
    coalesce(sum(saved_usd) FILTER (WHERE saved_usd > 0), 0) AS saved_usd,
    coalesce(-sum(saved_usd) FILTER (WHERE saved_usd < 0), 0) AS lost_usd,
    coalesce(sum(lower_usd) FILTER (WHERE NOT settled), 0) AS unsettled_lower_usd,
    CASE WHEN bool_or(NOT settled AND upper_usd IS NULL) THEN NULL
        ELSE coalesce(sum(upper_usd) FILTER (WHERE NOT settled), 0) END AS unsettled_upper_usd
FROM ledger
WHERE tenant = $1 AND session_id = $2 AND NOT open AND ($3::timestamptz IS NULL OR at >= $3)
HAVING count(*) > 0

-- name: approvals_waiting
SELECT coalesce(sum(jsonb_array_length(waiting_for -> 'approvals')), 0)::bigint
FROM jobs
WHERE status = 'parked'
    AND jsonb_typeof(waiting_for -> 'approvals') = 'array';

-- name: spent
SELECT coalesce(model, 'tool ' || tool) AS model, CASE WHEN model IS NULL THEN tool END AS tool, agent,
    coalesce(sum(cost_usd), 0)::float8 AS cost_usd,
    count(*) FILTER (WHERE settled AND cost_usd IS NULL) AS unknown,
    count(*) FILTER (WHERE NOT settled) AS unsettled,
    coalesce(sum(saved_usd) FILTER (WHERE saved_usd > 0), 0)::float8 AS saved_usd,
    coalesce(-sum(saved_usd) FILTER (WHERE saved_usd < 0), 0)::float8 AS lost_usd,
    sum(input_tokens)::bigint AS input_tokens, sum(cache_read_tokens)::bigint AS cache_read_tokens
FROM ledger
WHERE NOT open
GROUP BY 1, 2, 3
ORDER BY count(*) DESC, 1, 3

-- name: standbys_behind
SELECT standby, behind_bytes FROM standbys_behind()

-- name: keep_spans
SELECT first_day, last_day FROM keep_spans($1)

-- name: add_labels_to_words
-- Of jobs whose words a version before has stored, some at a time: in the order of the index of these.
UPDATE jobs SET words = words || array_to_tsvector(ARRAY['$', '$' || (beyond ->> 'agent_label')])
WHERE (tenant, job_id) IN (
    SELECT tenant, job_id FROM jobs
    WHERE beyond ->> 'agent_label' IS NOT NULL AND (words @@ '''$'''::tsquery) IS NOT TRUE AND words IS NOT NULL
    ORDER BY tenant, created_at DESC, job_id DESC
    LIMIT $1
)

-- name: forget_jobs
DELETE FROM jobs WHERE created_at < $1

-- name: forget_steps
DELETE FROM steps WHERE started_at < $1

-- name: forget_ledger
DELETE FROM ledger WHERE at < $1

-- name: forget_deliveries
DELETE FROM deliveries WHERE noted_at < $1

-- name: forget_feedback
DELETE FROM feedback WHERE at < $1

-- name: forget_joined_traces
DELETE FROM joined_traces WHERE at < $1

-- name: forget_received_spans
DELETE FROM received_spans WHERE hour < $1

-- name: forget_followers
DELETE FROM followers WHERE seen_at < $1

-- name: clear_job
DELETE FROM jobs WHERE tenant = $1 AND job_id = $2 AND seq <= $3

-- name: clear_steps
DELETE FROM steps WHERE tenant = $1 AND job_id = $2 AND seq <= $3

-- name: clear_ledger
DELETE FROM ledger WHERE tenant = $1 AND job_id = $2 AND seq <= $3

-- name: clear_spans
-- Those that are made anew, and where no other job is of this trace, also those that are not made any more.
DELETE FROM spans WHERE trace_id = $1 AND seq BETWEEN 1 AND $2 AND (
    span_id = ANY ($3) OR NOT EXISTS (SELECT FROM jobs WHERE tenant = $4 AND trace_id = $1 AND job_id <> $5)
)

-- name: drifted
-- A job that has gone on since its log was looked at is not behind; its sums are those of its own row.
SELECT tenant, job_id, drift
FROM (
    SELECT asked.tenant, asked.job_id, CASE
        WHEN jobs.seq IS NULL OR jobs.seq < asked.seq THEN 'behind'
        WHEN jobs.steps > (
            SELECT count(*) FROM steps WHERE steps.tenant = asked.tenant AND steps.job_id = asked.job_id
        ) THEN 'incomplete'
        WHEN jobs.cost_usd <> (
            SELECT coalesce(sum(ledger.cost_usd), 0) FROM ledger
            WHERE ledger.tenant = asked.tenant AND ledger.job_id = asked.job_id AND NOT ledger.open
        ) THEN 'incomplete'
    END AS drift
    FROM unnest($1::text[], $2::text[], $3::integer[]) AS asked (tenant, job_id, seq)
    -- One look into the index for each, whatever the planner believes of the table.
    LEFT JOIN LATERAL (
        SELECT seq, steps, cost_usd FROM jobs
        WHERE jobs.tenant = asked.tenant AND jobs.job_id = asked.job_id
        LIMIT 1
    ) AS jobs ON true
) AS found
WHERE drift IS NOT NULL

-- name: drift_places
SELECT walk, sequence FROM drift_places

-- name: put_drift_place
INSERT INTO drift_places (walk, sequence) VALUES ($1, $2)
ON CONFLICT (walk) DO UPDATE SET sequence = excluded.sequence, reached_at = clock_timestamp()

-- name: see_follower
UPDATE followers SET seen_at = clock_timestamp() WHERE tenant = $1 AND name = $2 RETURNING name

-- name: count_followers
SELECT count(*) FROM followers WHERE tenant = $1

-- name: add_follower
INSERT INTO followers (tenant, name) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- name: end_deliveries
UPDATE deliveries SET state = 'done' WHERE tenant = $1 AND follower = $2 AND job_id = ANY ($3) AND state = 'waiting'

-- name: fail_deliveries
-- The first wait is $5 seconds, and each one is twice as long as the one before, up to $6.
UPDATE deliveries
SET reason = failed.reason,
    due_at = clock_timestamp() + make_interval(secs => least($6, $5 * 2 ^ least(deliveries - 1, 20)))
FROM unnest($3::text[], $4::text[]) AS failed (job_id, reason)
WHERE tenant = $1 AND follower = $2 AND deliveries.job_id = failed.job_id AND state = 'waiting' AND deliveries > 0

-- name: used_up_deliveries
SELECT id, job_id, deliveries, reason
FROM deliveries
WHERE tenant = $1 AND follower = $2 AND state = 'waiting' AND deliveries >= $3
    AND (reason IS NOT NULL OR due_at <= clock_timestamp())
ORDER BY id
LIMIT $4
FOR UPDATE SKIP LOCKED

-- name: put_deliveries_aside
UPDATE deliveries SET state = 'aside' WHERE tenant = $1 AND follower = $2 AND job_id = ANY ($3)

-- name: take_deliveries
WITH due AS (
    SELECT job_id
    FROM deliveries
    WHERE tenant = $1 AND follower = $2 AND state = 'waiting' AND due_at <= clock_timestamp() AND deliveries < $3
    ORDER BY due_at, id
    LIMIT $4
    FOR UPDATE SKIP LOCKED
), taken AS (
    -- The reason is of the delivery before.
    UPDATE deliveries
    SET deliveries = deliveries + 1, due_at = clock_timestamp() + make_interval(secs => $5), reason = NULL
    FROM due
    WHERE tenant = $1 AND follower = $2 AND deliveries.job_id = due.job_id
    RETURNING deliveries.job_id, deliveries AS delivery
)
SELECT
    job_id, status, agent, user_id, session_id, left(answer, $6) AS answer,
    coalesce(length(answer) > $6, false) AS cut, partial, error_code, left(error_message, $6) AS error_message, steps,
    cost_usd, created_at, ended_at, delivery
FROM taken
JOIN jobs USING (job_id)
WHERE jobs.tenant = $1
ORDER BY ended_at, job_id

-- name: count_erasable
-- Jobs of the user that are named, and those that only tracing knows. The sums of the ledger stay.
WITH meant AS (
    SELECT job_id, trace_id FROM jobs WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[]))
)
SELECT
    (SELECT count(*) FROM meant) AS jobs,
    (SELECT count(*) FROM steps WHERE tenant = $1 AND job_id = ANY ($3 || ARRAY(SELECT job_id FROM meant))) AS steps,
    (
        SELECT count(*) FROM spans WHERE tenant = $1 AND trace_id = ANY ($4::text[] || ARRAY(SELECT trace_id FROM meant))
    ) AS spans,
    (SELECT count(*) FROM deliveries WHERE tenant = $1 AND job_id = ANY ($3 || ARRAY(SELECT job_id FROM meant)))
        AS deliveries,
    (
        SELECT count(*) FROM feedback
        WHERE tenant = $1 AND (given_by = $2 OR job_id = ANY ($3 || ARRAY(SELECT job_id FROM meant)))
    ) AS feedback,
    (
        SELECT count(*) FROM ledger
        WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3 || ARRAY(SELECT job_id FROM meant)))
            AND (user_id IS NOT NULL OR session_id IS NOT NULL)
    ) AS ledger_names

-- name: count_nameless
SELECT count(*) FROM ledger WHERE tenant = $1 AND job_id = ANY ($2::text[])

-- name: jobs_to_erase
SELECT job_id, trace_id FROM jobs WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[]))

-- name: erase_jobs
DELETE FROM jobs WHERE tenant = $1 AND job_id = ANY ($2::text[])

-- name: erase_steps
DELETE FROM steps WHERE tenant = $1 AND job_id = ANY ($2::text[])

-- name: erase_deliveries
DELETE FROM deliveries WHERE tenant = $1 AND job_id = ANY ($2::text[])

-- name: erase_feedback
DELETE FROM feedback WHERE tenant = $1 AND (given_by = $2 OR job_id = ANY ($3::text[]))
RETURNING job_id, given_by, key, revision

-- name: erase_spans_of_feedback
DELETE FROM spans WHERE tenant = $1 AND (trace_id, span_id) IN (SELECT * FROM unnest($2::text[], $3::text[]))

-- name: erase_spans
-- The jobs' own rows are gone by now: a trace that is a job's still is another one's.
DELETE FROM spans WHERE tenant = $1 AND (trace_id = ANY ($2::text[]) OR trace_id IN (
    SELECT trace_id FROM joined_traces AS joined WHERE tenant = $1 AND joins = ANY ($2)
        AND NOT EXISTS (SELECT FROM jobs WHERE jobs.trace_id = joined.trace_id AND jobs.tenant = $1)
))

-- name: erase_joins
DELETE FROM joined_traces WHERE tenant = $1 AND joins = ANY ($2::text[])

-- name: erase_names
UPDATE ledger SET user_id = NULL, session_id = NULL
WHERE tenant = $1 AND (user_id = $2 OR job_id = ANY ($3::text[])) AND (user_id IS NOT NULL OR session_id IS NOT NULL)

-- name: rows_with_samples
SELECT
    (
        SELECT count(*) FROM jobs
        WHERE tenant = $1 AND EXISTS (
            SELECT FROM unnest($2::text[]) AS sample WHERE position(sample IN concat_ws(' ', input, answer)) > 0
        )
    ) + (
        SELECT count(*) FROM steps
        WHERE tenant = $1 AND EXISTS (
            SELECT FROM unnest($2::text[]) AS sample WHERE position(sample IN concat_ws(' ', thought, output)) > 0
        )
    )

-- name: judged_job
-- Who judges the same job meanwhile waits.
SELECT trace_id FROM jobs WHERE tenant = $1 AND job_id = $2 FOR UPDATE

-- name: judgements_by_others
SELECT count(*) FROM feedback WHERE tenant = $1 AND job_id = $2 AND (given_by, key) <> ($3, $4)

-- name: put_feedback
-- No row: it was said before, in the same words.
INSERT INTO feedback AS old (tenant, job_id, given_by, key, score, label, comment)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (tenant, job_id, given_by, key) DO UPDATE SET
    score = excluded.score, label = excluded.label, comment = excluded.comment, at = clock_timestamp(),
    revision = old.revision + 1
WHERE (old.score, old.label, old.comment) IS DISTINCT FROM (excluded.score, excluded.label, excluded.comment)
RETURNING given_by AS by, key, score, label, comment, at, revision

-- name: get_feedback
SELECT given_by AS by, key, score, label, comment, at, revision FROM feedback
WHERE tenant = $1 AND job_id = $2 AND given_by = $3 AND key = $4

-- name: list_feedback
SELECT given_by AS by, key, score, label, comment, at FROM feedback
WHERE tenant = $1 AND job_id = $2
ORDER BY at DESC, given_by, key

-- name: sum_feedback
UPDATE jobs SET feedback = summed.feedback, feedback_score = summed.score
FROM (
    SELECT asked.job_id, avg(score) AS score, CASE WHEN count(given_by) > 0 THEN jsonb_build_object(
        'judgements', count(given_by), 'score', avg(score), 'labels', coalesce((
            SELECT jsonb_object_agg(label, named) FROM (
                SELECT label, count(*) AS named FROM feedback
                WHERE tenant = $1 AND feedback.job_id = asked.job_id AND label IS NOT NULL
                GROUP BY label
            ) AS labels
        ), '{}')
    ) END AS feedback
    FROM unnest($2::text[]) AS asked (job_id)
    LEFT JOIN feedback ON feedback.tenant = $1 AND feedback.job_id = asked.job_id
    GROUP BY asked.job_id
) AS summed
WHERE jobs.tenant = $1 AND jobs.job_id = summed.job_id

-- name: lock_jobs
SELECT job_id FROM jobs WHERE tenant = $1 AND job_id = ANY ($2::text[]) ORDER BY job_id FOR UPDATE

-- name: tag_jobs
-- What is taken away stays away, also where the job was submitted with it.
UPDATE jobs SET
    tags = later.tags, words = words_with_tags(jobs.words, later.tags),
    tags_added = later.added, tags_removed = later.removed
FROM (
    SELECT job_id, added, removed, merged_tags(submitted, added, removed) AS tags
    FROM (
        -- Both are kept no longer than they say something: a label that it was submitted with is not added, and one that
        -- it was not submitted with is not taken away from those.
        SELECT job_id, submitted, merged_tags(tags_added, merged_tags($3::text[], '{}', submitted), $4::text[]) AS added,
            ARRAY(SELECT unnest(merged_tags(tags_removed, $4, $3)) INTERSECT SELECT unnest(submitted) ORDER BY 1) AS removed
        FROM (
            SELECT *, merged_tags(tags, tags_removed, tags_added) AS submitted
            FROM jobs WHERE tenant = $1 AND job_id = ANY ($2::text[])
        ) AS known
    ) AS asked
) AS later
WHERE jobs.tenant = $1 AND jobs.job_id = later.job_id AND cardinality(later.tags) <= $5
RETURNING jobs.job_id

-- name: later_tags
-- Who labels the job meanwhile waits, and labels what is put in its place.
SELECT tags_added, tags_removed FROM jobs WHERE tenant = $1 AND job_id = $2 FOR UPDATE

-- name: put_later_tags
UPDATE jobs SET
    tags = merged_tags(tags, $3, $4), words = words_with_tags(words, merged_tags(tags, $3, $4)),
    tags_added = $3, tags_removed = $4
WHERE tenant = $1 AND job_id = $2
