-- Choose the version that answers each job whose agent has labels, or that asks for one: what it was admitted with
-- before; else what has the label that it asks for; else what its session goes on with; else what its lot falls to.
-- The version is null where there is none. Of other jobs nothing is returned, and where a batch has only such jobs no
-- more is read than that. It is no part of the statement that admits jobs, because Postgres then plans that statement
-- anew for each batch, which costs more than running it.
CREATE OR REPLACE FUNCTION choose_versions(
    for_tenant text, jobs text[], with_agents text[], with_labels text[], lots float8[], conversations text[],
    default_label text
)
RETURNS TABLE (job_id text, agent text, asked_for text, version integer, label text)
LANGUAGE plpgsql STABLE ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    IF num_nonnulls(VARIADIC with_labels) = 0
        AND NOT EXISTS (SELECT FROM agent_labels WHERE tenant = for_tenant AND agent = ANY (with_agents)) THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH asked AS (
        SELECT * FROM unnest(jobs, with_agents, with_labels, lots, conversations)
            AS asked (job_id, agent, label, lot, conversation)
    ), labelled AS (
        -- Each share begins where the one before it ends. A label of a deleted version counts for nothing: it may have
        -- been given while its agent was deleted.
        SELECT given.agent, label, given.version, share,
            sum(share) OVER (PARTITION BY given.agent ORDER BY label) AS below
        FROM agent_labels AS given JOIN agents ON agents.tenant = for_tenant AND agents.name = given.agent
            AND agents.version = given.version AND agents.retired_at IS NULL
        WHERE given.tenant = for_tenant AND given.agent = ANY (with_agents)
    )
    SELECT asked.job_id, asked.agent, asked.label, chosen.version, chosen.label
    FROM asked
    LEFT JOIN LATERAL (
        SELECT found.version, found.label FROM (
            SELECT 1 AS place, agent_version AS version, agent_label AS label FROM reservations
            WHERE tenant = for_tenant AND reservations.job_id = asked.job_id AND reservations.agent = asked.agent
            UNION ALL
            SELECT 2, labelled.version, labelled.label FROM labelled
            WHERE labelled.agent = asked.agent AND labelled.label = asked.label
            UNION ALL
            (
                -- A turn that was taken for a later job has no reservation yet.
                SELECT 3, agent_version, agent_label FROM (
                    SELECT session_turns.job_id, number FROM session_turns
                    WHERE tenant = for_tenant AND session_id = asked.conversation AND asked.label IS NULL
                    ORDER BY number DESC LIMIT 20
                ) AS turn JOIN reservations AS before ON before.tenant = for_tenant AND before.job_id = turn.job_id
                WHERE before.agent = asked.agent
                ORDER BY number DESC LIMIT 1
            )
            UNION ALL
            (
                SELECT 4, labelled.version, labelled.label FROM labelled
                WHERE labelled.agent = asked.agent AND asked.label IS NULL
                    AND (share IS NOT NULL AND asked.lot < below OR labelled.label = default_label)
                ORDER BY labelled.label = default_label, labelled.label LIMIT 1
            )
        ) AS found JOIN agents AS saved ON saved.tenant = for_tenant AND saved.name = asked.agent
            AND saved.version = found.version AND saved.retired_at IS NULL
        ORDER BY place LIMIT 1
    ) AS chosen ON true
    WHERE asked.label IS NOT NULL OR EXISTS (SELECT FROM labelled WHERE labelled.agent = asked.agent);
END $$;
