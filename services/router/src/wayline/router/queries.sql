-- name: count_begun
-- Those of messages that are long done are forgotten on the way.
WITH forgotten AS (
    DELETE FROM begun_messages WHERE last_at < now() - interval '7 days' AND (consumer, sequence) <> ($1, $2)
)
INSERT INTO begun_messages (consumer, sequence) VALUES ($1, $2)
ON CONFLICT (consumer, sequence) DO UPDATE SET begun = begun_messages.begun + 1, last_at = clock_timestamp()
RETURNING begun;

-- name: take_back_begun
UPDATE begun_messages SET begun = begun - 1, last_at = clock_timestamp()
WHERE consumer = $1 AND sequence = $2 AND begun > 0;

-- name: work_due
-- Which rooms have something to do that no message tells of: each is true where that room's own statements may find some.
-- No index is searched for what is before `clock_timestamp()`, which may change from row to row: so `now()`.
-- A budget's use is shown and its alerts are told as long as there is any; permits are swept as long as there is any.
SELECT
    EXISTS (SELECT FROM budgets WHERE period <> 'job')
        OR EXISTS (SELECT FROM reservations WHERE waits_for IS NOT NULL AND state = 'reserved')
        OR EXISTS (SELECT FROM budget_alerts WHERE NOT told) AS budgets,
    EXISTS (SELECT FROM forgets WHERE look_at <= now() AND look_at < 'infinity') AS forgetting,
    EXISTS (SELECT FROM run_permits) AS permits,
    EXISTS (SELECT FROM schedules WHERE next_at <= now())
        OR EXISTS (SELECT FROM firings WHERE submission IS NOT NULL) AS schedules;

-- name: tenant_is_enabled
-- No row: there is no such tenant.
SELECT disabled_at IS NULL FROM tenants WHERE tenant = $1;

-- name: count_tenants
SELECT count(*) FROM tenants;

-- name: create_tenant
INSERT INTO tenants (tenant) VALUES ($1) ON CONFLICT DO NOTHING
RETURNING tenant, created_at, disabled_at, disabled_reason, weight;

-- name: get_tenant
SELECT tenant, created_at, disabled_at, disabled_reason, weight FROM tenants WHERE tenant = $1;

-- name: list_tenants
SELECT tenant, created_at, disabled_at, disabled_reason, weight FROM tenants WHERE tenant > $1 ORDER BY tenant LIMIT $2;

-- name: disable_tenant
UPDATE tenants SET disabled_at = coalesce(disabled_at, now()), disabled_reason = $2 WHERE tenant = $1
RETURNING tenant, created_at, disabled_at, disabled_reason, weight;

-- name: enable_tenant
UPDATE tenants SET disabled_at = NULL, disabled_reason = '' WHERE tenant = $1
RETURNING tenant, created_at, disabled_at, disabled_reason, weight;

-- name: set_tenant_weight
UPDATE tenants SET weight = $2 WHERE tenant = $1
RETURNING tenant, created_at, disabled_at, disabled_reason, weight;

-- name: tenant_weights
SELECT tenant, weight FROM tenants WHERE tenant = ANY($1::text[]);

-- name: add_lane_turns
INSERT INTO lane_turns (lane) VALUES ($1) ON CONFLICT DO NOTHING;

-- name: lock_lane_turns
-- No row: another router is giving turns in this lane, or has just done so. Who only finds that out locks nothing: the
-- one that gives the turns would take it for another that does.
SELECT
    turns,
    given_at > clock_timestamp() - make_interval(secs => $2) AS fresh,
    set_config('idle_in_transaction_session_timeout', $5, true)
FROM lane_turns
WHERE lane = $1
    AND (coalesce(turns ->> 'by', $4) = $4 OR given_at <= clock_timestamp() - make_interval(secs => $3))
FOR UPDATE SKIP LOCKED;

-- name: save_lane_turns
UPDATE lane_turns SET turns = $2, given_at = clock_timestamp() WHERE lane = $1;

-- name: admit
-- One row a version of an agent, the newest one and those that are chosen by labels; one a job whose version is chosen
-- by labels, with the agent's name; one a job that some budget of the tenant counts, with the tightest of them; one a job
-- of a session, with its turn.
WITH asked AS (
    SELECT *
    FROM unnest(
        $2::text[], $3::text[], $4::text[], $5::numeric[], $9::text[], $10::text[], $12::bigint[], $13::bigint[],
        $14::bigint[], $16::text[], $17::float8[], $18::text[]
    )
        AS asked (
            job_id, agent, user_id, budget_usd, session_id, when_busy, accepted_ns, accepted_seq, sequence, label, lot,
            conversation
        )
), turning AS (
    -- With the submissions of their sessions that were accepted before them: these take a turn here, and nothing else.
    SELECT job_id, session_id, agent, user_id, when_busy, sequence FROM asked WHERE session_id IS NOT NULL
    UNION ALL
    SELECT * FROM jsonb_to_recordset($15::jsonb) AS earlier (
        job_id text, session_id text, agent text, user_id text, when_busy text, sequence bigint
    )
), chosen AS (
    SELECT (SELECT settings FROM tenant_settings WHERE tenant = $1) AS settings
), agent AS (
    SELECT DISTINCT ON (name) name, version, coalesce(written, config::json) AS config, inherits, settings,
        coalesce(config ->> 'max_cost_usd', settings ->> 'max_cost_usd')::numeric AS own_usd
    FROM agents CROSS JOIN chosen
    WHERE tenant = $1 AND (name = ANY ($3) OR name IN (SELECT turning.agent FROM turning)) AND retired_at IS NULL
    ORDER BY name, version DESC
), chosen_version AS (
    -- Nothing where no agent of these jobs has labels and none of them asks for one.
    SELECT * FROM choose_versions($1, $2, $3, $16, $17, $18, $19)
), labelled_agent AS (
    SELECT name, version, coalesce(written, config::json) AS config, inherits, settings,
        coalesce(config ->> 'max_cost_usd', settings ->> 'max_cost_usd')::numeric AS own_usd
    FROM agents CROSS JOIN chosen
    WHERE tenant = $1 AND (name, version) IN (SELECT agent, chosen_version.version FROM chosen_version)
), refused AS (
    SELECT job_id FROM chosen_version WHERE asked_for IS NOT NULL AND version IS NULL
), admitted AS (
    SELECT asked.*, coalesce(labelled_agent.version, agent.version) AS version, chosen_version.label AS given_label,
        CASE WHEN labelled_agent.name IS NULL THEN agent.own_usd ELSE labelled_agent.own_usd END AS own_usd
    FROM asked JOIN agent ON agent.name = asked.agent
    LEFT JOIN chosen_version ON chosen_version.job_id = asked.job_id AND chosen_version.agent = asked.agent
    LEFT JOIN labelled_agent ON labelled_agent.name = asked.agent AND labelled_agent.version = chosen_version.version
    WHERE asked.job_id NOT IN (SELECT refused.job_id FROM refused)
), counted AS (
    SELECT asked.job_id, budgets.name, budgets.period, budgets.hard, budgets.limit_usd,
        limit_usd - coalesce(spent_usd + reserved_usd + unsettled_usd, 0) AS free
    FROM asked
    JOIN budgets ON budgets.tenant = $1 AND in_scope(budgets.agent, budgets.user_id, asked.agent, asked.user_id)
    LEFT JOIN budget_windows AS now_in ON now_in.tenant = $1 AND now_in.budget = budgets.name
        AND starts_at = window_start(coalesce($7::timestamptz, now()), period, timezone)
), bound AS (
    SELECT job_id,
        min(limit_usd) FILTER (WHERE period = 'job') AS cap_usd,
        min(free) FILTER (WHERE period <> 'job' AND hard) AS left_usd,
        (array_agg(name ORDER BY free, name) FILTER (WHERE period <> 'job' AND hard))[1] AS tightest
    FROM counted GROUP BY job_id
), held AS (
    INSERT INTO reservations (
        tenant, job_id, reserved_usd, agent, user_id, cap_usd, cap_set, reserved_at, agent_version, agent_label
    )
    SELECT $1, admitted.job_id, 0, admitted.agent, admitted.user_id,
        coalesce(least(admitted.budget_usd, own_usd, bound.cap_usd), $6),
        least(admitted.budget_usd, own_usd, bound.cap_usd) IS NOT NULL, coalesce($7, now()), version, given_label
    FROM admitted LEFT JOIN bound USING (job_id)
    WHERE $8
    ORDER BY admitted.job_id
    ON CONFLICT (tenant, job_id) DO NOTHING
    RETURNING job_id
), latest AS (
    -- Only of a job that has just been admitted: one that comes again may have ended long ago. In one order, so that two
    -- statements never wait for each other.
    INSERT INTO latest_results AS known (tenant, user_id, agent, job_id, accepted_ns, accepted_seq, status)
    SELECT DISTINCT ON (user_id, agent) $1, user_id, agent, job_id, accepted_ns, accepted_seq, 'queued'
    FROM asked JOIN held USING (job_id) WHERE accepted_ns IS NOT NULL
    ORDER BY user_id, agent, accepted_ns DESC, accepted_seq DESC
    ON CONFLICT (tenant, user_id, agent) DO UPDATE SET
        job_id = excluded.job_id, accepted_ns = excluded.accepted_ns, accepted_seq = excluded.accepted_seq,
        status = excluded.status, outcome = NULL, plan = NULL, metadata = '{}', ended_at = NULL
    WHERE (known.accepted_ns, known.accepted_seq) < (excluded.accepted_ns, excluded.accepted_seq)
), conversing AS (
    -- Without such a job all of it is null, and no turn is taken.
    SELECT array_agg(job_id ORDER BY sequence, job_id) AS jobs,
        array_agg(session_id ORDER BY sequence, job_id) AS sessions,
        array_agg(turning.agent ORDER BY sequence, job_id) AS agents,
        array_agg(user_id ORDER BY sequence, job_id) AS users,
        array_agg(when_busy ORDER BY sequence, job_id) AS busy
    FROM turning JOIN agent ON agent.name = turning.agent
    WHERE $8 AND job_id NOT IN (SELECT refused.job_id FROM refused)
)
SELECT NULL AS job_id, name, version, config, inherits, settings, NULL::numeric AS cap_usd, NULL::numeric AS left_usd,
    NULL AS tightest, NULL::integer AS turn, NULL AS turn_after, NULL AS open_job, NULL AS label
FROM (SELECT * FROM agent UNION ALL SELECT * FROM labelled_agent) AS answering
UNION ALL
SELECT job_id, agent, version, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, label FROM chosen_version
UNION ALL
SELECT job_id, NULL, NULL, NULL, NULL, NULL, cap_usd, left_usd, tightest, NULL, NULL, NULL, NULL FROM bound
UNION ALL
SELECT taken.job_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, turn, turn_after, open_job, NULL
FROM conversing,
    take_turns($1, jobs, sessions, agents, users, busy, $11, coalesce($7::timestamptz, clock_timestamp())) AS taken;

-- name: end_latest_result
-- Not of a run that a newer one has replaced.
UPDATE latest_results SET
    status = $5, outcome = $6::jsonb, plan = $7::jsonb, metadata = $8::jsonb, ended_at = coalesce($9, clock_timestamp())
WHERE tenant = $1 AND user_id = $2 AND agent = $3 AND job_id = $4 AND ended_at IS NULL;

-- name: latest_result
SELECT job_id, status, outcome, plan, metadata, accepted_ns, ended_at FROM latest_results
WHERE tenant = $1 AND user_id = $2 AND agent = $3;

-- name: adopt
-- A job that another one started may spend what all above it have left, once. No row: it was adopted before.
WITH above AS (
    SELECT job_id || ancestors AS ids FROM reservations WHERE tenant = $1 AND job_id = $3
), family AS (
    SELECT min(cap_usd - reserved_usd - children_usd) AS left_usd, bool_or(cap_set) AS cap_set
    FROM above JOIN reservations AS job ON job.tenant = $1 AND job.job_id = ANY (above.ids)
)
UPDATE reservations AS child SET ancestors = above.ids, cap_set = child.cap_set OR family.cap_set,
    cap_usd = greatest(least(CASE WHEN child.cap_set THEN child.cap_usd END, family.left_usd), 0)
FROM above, family WHERE child.tenant = $1 AND child.job_id = $2 AND child.ancestors = '{}'
RETURNING child.cap_usd, child.cap_set;

-- name: cap_of
-- In a statement of its own: one that waited for another's adoption would read what was there before it.
SELECT cap_usd, cap_set FROM reservations WHERE tenant = $1 AND job_id = $2;

-- name: parent_of
SELECT ancestors[1] FROM reservations WHERE tenant = $1 AND job_id = $2;

-- name: hold
SELECT * FROM hold_money($1, $2, $3, $4, $5, $6, coalesce($7::timestamptz, now()));

-- name: settle
SELECT settle_money($1, $2, $3, $4, coalesce($5::timestamptz, now())) AS job_id;

-- name: put_charge
-- Of no agent and no user: budgets of the tenant count it, and those of a window `job` do not.
INSERT INTO reservations (tenant, job_id, reserved_usd, agent, user_id, cap_usd, cap_set, reserved_at)
VALUES ($1, $2, 0, '', NULL, NULL, false, coalesce($3::timestamptz, now()))
ON CONFLICT (tenant, job_id) DO NOTHING;

-- name: name_refused_job
-- Of a job that was never admitted, whose log is forgotten with its user.
INSERT INTO reservations (tenant, job_id, state, reserved_usd, settled_usd, settled_at, agent, user_id)
VALUES ($1, $2, 'settled', 0, 0, now(), $3, $4)
ON CONFLICT (tenant, job_id) DO NOTHING;

-- name: forget_refused_charges
-- Only where nothing is held: the same call may be made once there is room.
DELETE FROM reservations
WHERE NOT is_settled_charge AND starts_with(job_id, 'tool/') AND state = 'reserved' AND reserved_usd = 0
    AND reserved_at < coalesce($1::timestamptz, now()) - make_interval(secs => $2);

-- name: lost_charges
SELECT tenant, job_id AS charge_id, reserved_usd FROM reservations
WHERE NOT is_settled_charge AND starts_with(job_id, 'tool/') AND state = 'reserved'
    AND reserved_at < coalesce($1::timestamptz, now()) - make_interval(secs => $2)
ORDER BY reserved_at LIMIT $3;

-- name: release
SELECT release_money($1, $2, $3, $4);

-- name: raise_cap
UPDATE reservations SET cap_usd = $3, cap_set = true WHERE tenant = $1 AND job_id = $2 AND state = 'reserved';

-- name: put_budget
SELECT put_budget($1, $2, $3, $4, $5, $6, $7, $8, $9, coalesce($10::timestamptz, now()));

-- name: count_budgets
SELECT count(*) FROM budgets WHERE tenant = $1 AND name <> $2;

-- name: delete_budget
WITH locked AS MATERIALIZED (SELECT lock_budgets($1))
DELETE FROM budgets USING locked WHERE tenant = $1 AND name = $2;

-- name: list_budgets
SELECT budgets.*, nullif(here.starts_at, '-infinity') AS starts_at,
    nullif(window_end(here.starts_at, period, timezone), 'infinity') AS ends_at,
    coalesce(spent_usd, 0) AS spent_usd, coalesce(reserved_usd, 0) AS reserved_usd,
    coalesce(unsettled_usd, 0) AS unsettled_usd, coalesce(unsettled_jobs, 0) AS unsettled_jobs,
    (SELECT count(*) FROM reservations WHERE tenant = $1 AND waits_for = budgets.name) AS waiting_jobs,
    ARRAY(
        SELECT jsonb_build_object(
            'threshold', threshold::text, 'at', at, 'used_usd', used_usd::text, 'limit_usd', alert.limit_usd::text
        )
        FROM budget_alerts AS alert
        WHERE alert.tenant = $1 AND alert.budget = budgets.name AND alert.starts_at = here.starts_at ORDER BY threshold
    ) AS raised
FROM budgets
CROSS JOIN LATERAL (SELECT window_start(coalesce($3::timestamptz, now()), period, timezone) AS starts_at) AS here
LEFT JOIN budget_windows AS now_in ON now_in.tenant = $1 AND now_in.budget = budgets.name
    AND now_in.starts_at = here.starts_at
WHERE budgets.tenant = $1 AND ($2::text IS NULL OR budgets.name = $2)
ORDER BY budgets.name;

-- name: wakeable
-- Jobs that a budget refused and that would fit now, the longest waiting first, no more of them than fit together.
WITH waiting AS (
    SELECT job.tenant, job.job_id, job.waits_for, job.waits_since, job.waits_usd - job.reserved_usd AS need, (
            SELECT min(limit_usd - coalesce(spent_usd + reserved_usd + unsettled_usd, 0))
            FROM budgets
            LEFT JOIN budget_windows AS now_in ON now_in.tenant = job.tenant AND now_in.budget = budgets.name
                AND now_in.starts_at = window_start(coalesce($1::timestamptz, now()), period, timezone)
            WHERE budgets.tenant = job.tenant AND period <> 'job' AND hard
                AND in_scope(budgets.agent, budgets.user_id, job.agent, job.user_id)
        ) AS free
    FROM reservations AS job
    WHERE waits_for IS NOT NULL AND state = 'reserved'
), fitting AS (
    SELECT *, sum(need) OVER (PARTITION BY tenant, waits_for ORDER BY waits_since, job_id) AS queue
    FROM waiting WHERE free IS NULL OR need <= free
)
SELECT tenant, job_id, waits_since FROM fitting WHERE free IS NULL OR queue <= free ORDER BY waits_since LIMIT $2;

-- name: woken
-- Only what was seen: a job that was refused again meanwhile waits on.
UPDATE reservations SET waits_for = NULL, waits_usd = NULL, waits_since = NULL
WHERE tenant = $1 AND job_id = $2 AND waits_since = $3;

-- name: untold_alerts
SELECT tenant, budget, starts_at, threshold, at, used_usd, limit_usd FROM budget_alerts WHERE NOT told
ORDER BY at LIMIT 200;

-- name: tell_alerts
UPDATE budget_alerts SET told = true
WHERE NOT told AND (tenant, budget, starts_at, threshold) IN (
    SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::numeric[])
)
RETURNING tenant, budget, starts_at, threshold, used_usd, limit_usd;

-- name: use_of_budgets
-- Those that are nearest to their limit, so many of each tenant; `budgets` counts them all.
WITH used AS (
    SELECT budgets.tenant, name AS budget, limit_usd::float8 AS "limit", coalesce(spent_usd, 0)::float8 AS spent,
        coalesce(reserved_usd, 0)::float8 AS reserved, coalesce(unsettled_usd, 0)::float8 AS unsettled,
        count(*) OVER () AS budgets
    FROM budgets
    LEFT JOIN budget_windows AS now_in ON now_in.tenant = budgets.tenant AND now_in.budget = budgets.name
        AND now_in.starts_at = window_start(now(), period, timezone)
    WHERE period <> 'job'
), ranked AS (
    SELECT *, row_number() OVER (
        PARTITION BY tenant ORDER BY spent / greatest("limit", 0.000001) DESC, budget
    ) AS place FROM used
)
SELECT * FROM ranked WHERE place <= $2 ORDER BY spent / greatest("limit", 0.000001) DESC, tenant, budget LIMIT $1;

-- name: get_agent
SELECT version, coalesce(written, config::json) AS config, inherits,
    (SELECT settings FROM tenant_settings WHERE tenant = $1) AS settings
FROM agents
WHERE tenant = $1 AND name = $2 AND retired_at IS NULL
ORDER BY version DESC LIMIT 1;

-- name: describe_agents
SELECT DISTINCT ON (name) name, config ->> 'description' AS description FROM agents
WHERE tenant = $1 AND name = ANY ($2) AND retired_at IS NULL
ORDER BY name, version DESC;

-- name: page_of_agents
SELECT DISTINCT ON (name) name, version, coalesce(written, config::json) AS config, inherits,
    (SELECT settings FROM tenant_settings WHERE tenant = $1) AS settings
FROM agents
WHERE tenant = $1 AND retired_at IS NULL AND name > $2
ORDER BY name, version DESC
LIMIT $3;

-- name: agent_versions
-- Also retired ones: jobs that began with them go on.
SELECT name, version, coalesce(written, config::json) AS config, inherits,
    (SELECT settings FROM tenant_settings WHERE tenant = $1) AS settings
FROM agents
WHERE tenant = $1 AND (name, version) IN (SELECT * FROM unnest($2::text[], $3::integer[]));

-- name: versions_of_agent
-- With the one before each, for what has changed.
SELECT version, coalesce(written, config::json) AS config, saved_by, created_at, retired_at,
    lag(coalesce(written, config::json)) OVER (ORDER BY version) AS config_before
FROM agents WHERE tenant = $1 AND name = $2 AND ($3::integer IS NULL OR version < $3)
ORDER BY version DESC LIMIT $4;

-- name: version_of_agent
SELECT version, coalesce(written, config::json) AS config, inherits, saved_by, created_at, retired_at,
    (SELECT coalesce(written, config::json) FROM agents WHERE tenant = $1 AND name = $2 AND version = $3 - 1) AS config_before,
    (SELECT settings FROM tenant_settings WHERE tenant = $1) AS settings
FROM agents WHERE tenant = $1 AND name = $2 AND version = $3;

-- name: put_agent
-- What an older version saved has no list of what it inherits: $5 is what it meant.
WITH newest AS (
    SELECT version, config, coalesce(written, config::json) AS written, coalesce(inherits, $5::text[]) AS inherits,
        retired_at
    FROM agents
    WHERE tenant = $1 AND name = $2 ORDER BY version DESC LIMIT 1
), added AS (
    INSERT INTO agents (tenant, name, version, config, written, inherits, saved_by)
    SELECT $1, $2, coalesce((SELECT version FROM newest), 0) + 1, $3::json::jsonb, $3::json, $4::text[], $6
    WHERE NOT EXISTS (
        SELECT FROM newest
        WHERE config = $3::json::jsonb AND inherits = $4::text[] AND retired_at IS NULL
            -- Models answer in the order of its fields.
            AND (written -> 'output_schema')::text IS NOT DISTINCT FROM ($3::json -> 'output_schema')::text
    )
    RETURNING version, written, inherits
), saved AS (
    SELECT version, written, inherits FROM added
    UNION ALL
    SELECT version, written, inherits FROM newest WHERE NOT EXISTS (SELECT FROM added)
)
SELECT version, written AS config, inherits, (SELECT settings FROM tenant_settings WHERE tenant = $1) AS settings FROM saved;

-- name: delete_agent
WITH unlabelled AS (
    DELETE FROM agent_labels WHERE tenant = $1 AND agent = $2
)
UPDATE agents SET retired_at = now() WHERE tenant = $1 AND name = $2 AND retired_at IS NULL;

-- name: labels_of_agents
SELECT agent, label, given.version, share
FROM agent_labels AS given JOIN agents ON agents.tenant = $1 AND agents.name = given.agent
    AND agents.version = given.version AND agents.retired_at IS NULL
WHERE given.tenant = $1 AND agent = ANY ($2) ORDER BY agent, label;

-- name: lock_version
-- Labels of an agent are changed one at a time: its first version is the same row for all who change them.
WITH first AS (
    SELECT version FROM agents WHERE tenant = $1 AND name = $2 ORDER BY version LIMIT 1 FOR NO KEY UPDATE
)
SELECT version FROM agents
WHERE tenant = $1 AND name = $2 AND version = $3 AND retired_at IS NULL AND EXISTS (SELECT FROM first);

-- name: put_agent_label
INSERT INTO agent_labels (tenant, agent, label, version, share) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, agent, label) DO UPDATE SET version = excluded.version, share = excluded.share;

-- name: delete_agent_label
DELETE FROM agent_labels WHERE tenant = $1 AND agent = $2 AND label = $3;

-- name: last_saved_agent
-- Also a retired one.
SELECT coalesce(written, config::json) AS config, inherits FROM agents
WHERE tenant = $1 AND name = $2 ORDER BY version DESC LIMIT 1;

-- name: seed_agent
-- One that an older version has seeded, and that is still the same, leaves to the settings what a new one does.
INSERT INTO agents (tenant, name, version, config, written, inherits)
SELECT tenant, $1, 1, $2::json::jsonb, $2::json, $3::text[] FROM tenants
ON CONFLICT (tenant, name, version) DO UPDATE SET inherits = excluded.inherits
WHERE agents.inherits IS NULL AND excluded.config @> agents.config;

-- name: get_settings
SELECT settings, updated_at FROM tenant_settings WHERE tenant = $1;

-- name: change_settings
-- A null takes a setting back to its default.
INSERT INTO tenant_settings AS own (tenant, settings) VALUES ($1, jsonb_strip_nulls($2::jsonb))
ON CONFLICT (tenant) DO UPDATE SET settings = jsonb_strip_nulls(own.settings || $2::jsonb), updated_at = now()
RETURNING settings, updated_at;

-- name: list_models
SELECT card FROM models WHERE tenant = $1 ORDER BY provider, model;

-- name: put_model
INSERT INTO models (tenant, provider, model, card)
SELECT $1, $2, $3, $4::jsonb
WHERE EXISTS (SELECT FROM models WHERE tenant = $1 AND provider = $2 AND model = $3)
    OR (SELECT count(*) FROM models WHERE tenant = $1) < $5
ON CONFLICT (tenant, provider, model) DO UPDATE SET card = excluded.card, updated_at = now()
RETURNING true;

-- name: delete_model
DELETE FROM models WHERE tenant = $1 AND provider = $2 AND model = $3;

-- name: remember_session
WITH forgotten AS (
    DELETE FROM session_caches WHERE tenant = $1 AND session_id = ANY (ARRAY(
        SELECT session_id FROM session_caches
        WHERE tenant = $1 AND until <= $8 AND session_id <> $2 ORDER BY until LIMIT $9 FOR UPDATE SKIP LOCKED
    ))
)
INSERT INTO session_caches AS known (tenant, session_id, agent, agent_version, model, prefix_tokens, until)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (tenant, session_id) DO UPDATE SET
    agent = excluded.agent, agent_version = excluded.agent_version, model = excluded.model,
    prefix_tokens = excluded.prefix_tokens, until = excluded.until
WHERE known.until < excluded.until;

-- name: warm_session
SELECT model, prefix_tokens FROM session_caches
WHERE tenant = $1 AND session_id = $2 AND agent = $3 AND agent_version = $4 AND until > $5;

-- name: forget_usage
DELETE FROM agent_usage WHERE tenant = $1 AND (agent, model, slot) IN (
    SELECT agent, model, slot FROM agent_usage
    WHERE tenant = $1 AND updated_at <= $2 ORDER BY updated_at LIMIT $3 FOR UPDATE SKIP LOCKED
);

-- name: learn_usage
-- The averages of jobs that ended, one row for each agent, model and slot, go into the averages of those before them.
INSERT INTO agent_usage AS known (
    tenant, agent, model, slot, jobs, calls, output_tokens, longest_tokens, longest_deviation, tools, tools_tokens,
    density, updated_at
)
SELECT $1, agent, model, slot, jobs, calls, output_tokens, longest_tokens, longest_tokens / 2, tools, tools_tokens,
    density, $12
FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::int[], $6::float8[], $7::float8[], $8::float8[], $9::int[], $10::int[],
    $11::float8[]
) AS used (agent, model, slot, jobs, calls, output_tokens, longest_tokens, tools, tools_tokens, density)
ORDER BY agent, model, slot
ON CONFLICT (tenant, agent, model, slot) DO UPDATE SET
    jobs = known.jobs + excluded.jobs,
    calls = known.calls + (excluded.calls - known.calls)
        * excluded.jobs / (least(known.jobs, $13::int) + excluded.jobs),
    output_tokens = known.output_tokens + (excluded.output_tokens - known.output_tokens)
        * excluded.jobs / (least(known.jobs, $13::int) + excluded.jobs),
    longest_tokens = known.longest_tokens + (excluded.longest_tokens - known.longest_tokens)
        * excluded.jobs / (least(known.jobs, $13::int) + excluded.jobs),
    longest_deviation = known.longest_deviation
        + (abs(excluded.longest_tokens - known.longest_tokens) - known.longest_deviation)
        * excluded.jobs / (least(known.jobs, $13::int) + excluded.jobs),
    -- A job whose provider counted nothing says nothing, and the first that does says it all.
    density = coalesce(
        known.density + (excluded.density - known.density)
            * excluded.jobs / (least(known.jobs, $13::int) + excluded.jobs),
        excluded.density, known.density
    ),
    tools = excluded.tools, tools_tokens = excluded.tools_tokens, updated_at = excluded.updated_at;

-- name: agent_usage
SELECT model, slot, jobs, calls, output_tokens, longest_tokens, longest_deviation, tools, tools_tokens, density
FROM agent_usage WHERE tenant = $1 AND agent = $2 AND updated_at > $3
ORDER BY updated_at DESC, model, slot LIMIT $4;

-- name: add_stored
-- In one order for every router, so that two of them never wait for each other.
WITH forgotten AS (
    DELETE FROM stored_bytes WHERE tenant = ANY ($1::text[]) AND day <= (now() AT TIME ZONE 'UTC')::date - $3::int
)
INSERT INTO stored_bytes AS old (tenant, day, bytes)
SELECT tenant, (now() AT TIME ZONE 'UTC')::date, bytes
FROM unnest($1::text[], $2::bigint[]) AS added (tenant, bytes) ORDER BY tenant
ON CONFLICT (tenant, day) DO UPDATE SET bytes = old.bytes + excluded.bytes;

-- name: stored_bytes
SELECT coalesce(sum(bytes), 0)::bigint FROM stored_bytes
WHERE tenant = $1 AND day > (now() AT TIME ZONE 'UTC')::date - $2::int;

-- name: turn_of
SELECT number, after FROM session_turns WHERE tenant = $1 AND job_id = $2;

-- name: end_turns
-- Returns the sessions whose next turn may come.
UPDATE session_turns SET ended_at = coalesce(ended_at, clock_timestamp()) WHERE tenant = $1 AND job_id = ANY ($2::text[])
RETURNING session_id;

-- name: open_turns
-- In their order; those before a number.
SELECT job_id FROM session_turns
WHERE tenant = $1 AND session_id = $2 AND ended_at IS NULL AND number < coalesce($3, 2147483647)
ORDER BY number LIMIT $4;

-- name: steering_turns
-- In their order; those whose running job was not told of them.
SELECT job_id FROM session_turns
WHERE tenant = $1 AND session_id = $2 AND steers AND steered_at IS NULL AND ended_at IS NULL ORDER BY number;

-- name: steered
UPDATE session_turns SET steered_at = clock_timestamp() WHERE tenant = $1 AND job_id = $2;

-- name: first_open_turns
-- Of every session after a place, the first turn that was not marked as ended and was taken long ago.
-- One that another submission of its session took for it has no reservation yet.
SELECT DISTINCT ON (tenant, session_id) tenant, session_id, job_id, number, after, taken_at,
    coalesce(reservations.agent, sessions.agent) AS agent
FROM session_turns JOIN sessions USING (tenant, session_id) LEFT JOIN reservations USING (tenant, job_id)
WHERE ended_at IS NULL AND (tenant, session_id) > ($1, $2) AND taken_at < clock_timestamp() - make_interval(secs => $3)
ORDER BY tenant, session_id, number LIMIT $4;

-- name: remember_turn
-- Once it is given to a job, what that user said in it is not to be read again.
UPDATE session_turns SET remember_for = $3
WHERE tenant = $1 AND job_id = $2 AND session_id IS NOT NULL AND read_by IS NULL;

-- name: quiet_sessions
-- $1 seconds since the newest turn ended  $2 limit, of which each tenant has its share
-- Not while a job waits for a budget that would count the one that reads: that one would only wait beside it.
WITH used_up AS MATERIALIZED (
    SELECT DISTINCT budgets.tenant, budgets.agent, budgets.user_id
    FROM reservations AS job JOIN budgets ON budgets.tenant = job.tenant AND budgets.name = job.waits_for
    WHERE waits_for IS NOT NULL AND state = 'reserved'
)
SELECT turn.tenant, turn.session_id, turn.remember_for AS user_id
FROM session_turns AS turn
JOIN sessions AS session ON session.tenant = turn.tenant AND session.session_id = turn.session_id
JOIN session_turns AS tail ON tail.tenant = turn.tenant AND tail.job_id = session.tail_job
WHERE turn.remember_for IS NOT NULL AND turn.ended_at < clock_timestamp() - make_interval(secs => $1)
    AND tail.ended_at < clock_timestamp() - make_interval(secs => $1)
    AND NOT EXISTS (
        SELECT FROM used_up
        WHERE used_up.tenant = turn.tenant
            AND in_scope(used_up.agent, used_up.user_id, session.agent, turn.remember_for)
    )
GROUP BY 1, 2, 3
ORDER BY row_number() OVER (PARTITION BY turn.tenant ORDER BY min(turn.ended_at)), min(turn.ended_at)
LIMIT $2;

-- name: lock_quiet_session
-- No row: it goes on, or is forgotten.
SELECT session_id, agent FROM sessions AS session
WHERE tenant = $1 AND session_id = $2 AND updated_at < clock_timestamp() - make_interval(secs => $3) AND NOT EXISTS (
    SELECT FROM session_turns AS turn WHERE turn.tenant = $1 AND turn.session_id = $2
        AND (turn.ended_at IS NULL OR turn.ended_at >= clock_timestamp() - make_interval(secs => $3))
)
FOR UPDATE;

-- name: unread_turns
SELECT job_id FROM session_turns
WHERE tenant = $1 AND session_id = $2 AND remember_for = $3 AND read_by IS NULL ORDER BY number LIMIT $4;

-- name: read_turns
UPDATE session_turns SET read_by = $3, remember_for = NULL WHERE tenant = $1 AND job_id = ANY ($2::text[]);

-- name: begin_extraction
INSERT INTO extractions (tenant, job_id, user_id, decided_at, submission) VALUES ($1, $2, $3, clock_timestamp(), $4)
ON CONFLICT (tenant, job_id) DO NOTHING
RETURNING *;

-- name: unsent_extractions
-- Left by a router that died, or that the bus refused; not those that another router has in hand right now. A tenant whose
-- share of the bus is full has many: the others' come beside them.
SELECT * FROM extractions WHERE decided_at < clock_timestamp() - make_interval(secs => $1)
ORDER BY row_number() OVER (PARTITION BY tenant ORDER BY decided_at), decided_at LIMIT $2;

-- name: extraction_sent
DELETE FROM extractions WHERE tenant = $1 AND job_id = $2;

-- name: want_summary
-- Only while the job has its user's name: what is settled once more after they were forgotten must not name them again.
INSERT INTO memory_summaries AS known (tenant, user_id, agent, wanted_at)
SELECT tenant, user_id, $3, clock_timestamp() FROM (
    SELECT tenant, user_id FROM reservations WHERE tenant = $1 AND job_id = $4 AND user_id = $2 FOR SHARE
) AS named
ON CONFLICT (tenant, user_id) DO UPDATE SET
    agent = excluded.agent, wanted_at = coalesce(known.wanted_at, excluded.wanted_at),
    look_at = CASE WHEN known.wanted_at IS NULL THEN '-infinity' ELSE known.look_at END
WHERE known.wanted_at IS NULL OR known.agent <> excluded.agent;

-- name: summaries_due
-- $1 seconds since it is wanted  $2 seconds since the last one  $3 limit, of which each tenant has its share
-- One that is not due is looked at again when it will be: of most users that is days later. None is due while a job waits
-- for a budget that would count the one that summarises.
WITH looked_at AS MATERIALIZED (
    SELECT ctid AS place, tenant, user_id, agent, wanted_at,
        -- Of no earlier one is null, which counts for nothing here.
        greatest(wanted_at + make_interval(secs => $1), begun_at + make_interval(secs => $2)) AS due_at
    FROM memory_summaries
    WHERE wanted_at IS NOT NULL AND look_at <= now()
    FOR UPDATE SKIP LOCKED
), put_off AS (
    -- By where they are: a join could be planned to read all others.
    UPDATE memory_summaries
    SET look_at = greatest(wanted_at + make_interval(secs => $1), begun_at + make_interval(secs => $2))
    WHERE ctid = ANY (ARRAY(SELECT place FROM looked_at WHERE due_at >= clock_timestamp()))
), used_up AS MATERIALIZED (
    SELECT DISTINCT budgets.tenant, budgets.agent, budgets.user_id
    FROM reservations AS job JOIN budgets ON budgets.tenant = job.tenant AND budgets.name = job.waits_for
    WHERE waits_for IS NOT NULL AND state = 'reserved'
)
SELECT tenant, user_id FROM looked_at
WHERE due_at < clock_timestamp() AND NOT EXISTS (
    SELECT FROM used_up
    WHERE used_up.tenant = looked_at.tenant
        AND in_scope(used_up.agent, used_up.user_id, looked_at.agent, looked_at.user_id)
)
ORDER BY row_number() OVER (PARTITION BY tenant ORDER BY wanted_at), wanted_at
LIMIT $3;

-- name: lock_due_summary
-- No row: another router was faster, or the user is forgotten.
SELECT agent, wanted_at FROM memory_summaries
WHERE tenant = $1 AND user_id = $2 AND wanted_at < clock_timestamp() - make_interval(secs => $3)
    AND (begun_at IS NULL OR begun_at < clock_timestamp() - make_interval(secs => $4))
FOR UPDATE;

-- name: begin_summary
UPDATE memory_summaries SET wanted_at = NULL, begun_at = clock_timestamp() WHERE tenant = $1 AND user_id = $2;

-- name: forget_turns
-- Returns how many there were.
WITH forgotten AS (
    DELETE FROM session_turns WHERE (tenant, job_id) IN (
        SELECT tenant, job_id FROM session_turns
        WHERE taken_at < clock_timestamp() - make_interval(days => $1) ORDER BY taken_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ) RETURNING job_id
)
SELECT count(*) FROM forgotten;

-- name: get_session
SELECT session_id, agent, user_id, turns, tail_job, created_at, updated_at FROM sessions
WHERE tenant = $1 AND session_id = $2;

-- name: turns_of_session
SELECT job_id, number, after, taken_at, ended_at FROM session_turns
WHERE tenant = $1 AND session_id = $2 AND number < coalesce($3, 2147483647)
ORDER BY number DESC LIMIT $4;

-- name: list_sessions
SELECT session_id, agent, user_id, turns, tail_job, created_at, updated_at FROM sessions
WHERE tenant = $1 AND ($2::text IS NULL OR agent = $2) AND ($3::text IS NULL OR user_id = $3)
    AND ($4::timestamptz IS NULL OR (updated_at, session_id) < ($4, $5::text))
ORDER BY updated_at DESC, session_id DESC LIMIT $6;

-- name: forget_session
SELECT deleted, open_job FROM forget_session($1, $2);

-- name: now
SELECT clock_timestamp();

-- name: list_schedules
SELECT * FROM schedules WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3;

-- name: get_schedule
SELECT * FROM schedules WHERE tenant = $1 AND name = $2;

-- name: lock_schedule
SELECT * FROM schedules WHERE tenant = $1 AND name = $2 FOR UPDATE;

-- name: count_schedules
SELECT count(*) FROM schedules WHERE tenant = $1;

-- name: create_schedule
INSERT INTO schedules (tenant, name, uid, config, next_at) VALUES ($1, $2, $3, $4, $5) RETURNING *;

-- name: change_schedule
UPDATE schedules SET version = version + 1, config = $3, next_at = $4, updated_at = now()
WHERE tenant = $1 AND name = $2 RETURNING *;

-- name: delete_schedule
DELETE FROM schedules WHERE tenant = $1 AND name = $2;

-- name: due_schedules
-- A disabled tenant's wait: once it is enabled again, they are late like those of a router that was away.
SELECT schedules.*, clock_timestamp() AS moment FROM schedules JOIN tenants USING (tenant)
WHERE next_at <= now() AND disabled_at IS NULL
ORDER BY next_at LIMIT $1;

-- name: last_firing
SELECT job_id, decided_at FROM firings
WHERE tenant = $1 AND uid = $2 AND outcome = 'fired' AND cause = 'due' ORDER BY due_at DESC LIMIT 1;

-- name: decide_firing
-- Only by the plan that was seen: what was changed, deleted or decided since is left alone.
WITH planned AS (
    UPDATE schedules SET next_at = $6
    WHERE tenant = $1 AND name = $2 AND uid = $3 AND version = $4 AND next_at = $5
    RETURNING tenant, name, uid, version
)
INSERT INTO firings (
    tenant, job_id, schedule, uid, version, due_at, decided_at, cause, outcome, reason, missed, submission
)
SELECT tenant, $7, name, uid, version, $8, clock_timestamp(), 'due', $9, $10, $11, $12 FROM planned
ON CONFLICT (tenant, job_id) DO NOTHING
RETURNING *;

-- name: run_schedule
-- No row: there is no such schedule, or the same firing is there.
INSERT INTO firings (tenant, job_id, schedule, uid, version, due_at, decided_at, cause, outcome, submission)
SELECT tenant, $3, name, uid, version, clock_timestamp(), clock_timestamp(), 'run', 'fired', $4
FROM schedules WHERE tenant = $1 AND name = $2
ON CONFLICT (tenant, job_id) DO NOTHING
RETURNING *;

-- name: get_firing
-- In a statement of its own: one that found a conflict with another's new row does not see that row.
SELECT * FROM firings WHERE tenant = $1 AND job_id = $2;

-- name: unsent_firings
-- Left by a router that died, or that the bus refused; not those that another router has in hand right now.
SELECT * FROM firings
WHERE submission IS NOT NULL AND decided_at < clock_timestamp() - make_interval(secs => $1)
ORDER BY decided_at LIMIT $2;

-- name: firing_sent
UPDATE firings SET submission = NULL WHERE tenant = $1 AND job_id = $2;

-- name: firing_refused
UPDATE firings SET outcome = 'refused', reason = $3 WHERE tenant = $1 AND job_id = $2;

-- name: firing_failed
UPDATE firings SET outcome = 'refused', reason = $3, submission = NULL WHERE tenant = $1 AND job_id = $2;

-- name: firing_of_job
SELECT schedule, version, due_at, missed FROM firings WHERE tenant = $1 AND job_id = $2;

-- name: firings_of_schedules
SELECT found.* FROM unnest($2::text[]) AS asked (uid)
CROSS JOIN LATERAL (
    SELECT * FROM firings WHERE tenant = $1 AND firings.uid = asked.uid
    ORDER BY due_at DESC, decided_at DESC LIMIT $3
) AS found;

-- name: forget_firings
DELETE FROM firings WHERE (tenant, job_id) IN (
    SELECT tenant, job_id FROM firings
    WHERE decided_at < clock_timestamp() - make_interval(days => $1) AND submission IS NULL LIMIT $2
);
