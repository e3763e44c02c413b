-- name: lock_owner
-- One writer of an owner at a time: what is the same, and what is too much, is decided by what all others have written.
SELECT pg_advisory_xact_lock(hashtextextended('retrieval.memory/' || $1::text || '/' || $2::text, 0));

-- name: begin_write
-- The lock of `lock_owner`, then a key; no row: it is taken. What follows has one plan for all owners: making one for each
-- takes longer than it runs.
WITH locked AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtextextended('retrieval.memory/' || $1::text || '/' || $2::text, 0)),
        set_config('plan_cache_mode', 'force_generic_plan', true)
)
INSERT INTO fact_writes (tenant, owner, write_key, content_hash) SELECT $1::text, $2::text, $3::text, $4::text FROM locked
ON CONFLICT (tenant, write_key) DO NOTHING
RETURNING write_key;

-- name: find_write
SELECT owner, content_hash, answer FROM fact_writes WHERE tenant = $1 AND write_key = $2;

-- name: end_write
UPDATE fact_writes SET answer = $3 WHERE tenant = $1 AND write_key = $2;

-- name: forget_old_writes
-- A few with every write of the owner: they never become many.
DELETE FROM fact_writes
WHERE tenant = $1 AND write_key IN (
    SELECT write_key FROM fact_writes WHERE tenant = $1 AND owner = $2 AND written_at < $3 ORDER BY written_at LIMIT 100
);

-- name: sweep_uses
DELETE FROM fact_uses WHERE ctid = ANY (ARRAY(SELECT ctid FROM fact_uses WHERE used_at < $1 ORDER BY used_at LIMIT $2));

-- name: sweep_writes
DELETE FROM fact_writes
WHERE ctid = ANY (ARRAY(SELECT ctid FROM fact_writes WHERE written_at < $1 ORDER BY written_at LIMIT $2));

-- name: live_facts
SELECT * FROM facts WHERE tenant = $1 AND owner = $2 AND retired_at IS NULL ORDER BY recorded_at, fact_id;

-- name: named_facts
SELECT * FROM facts WHERE tenant = $1 AND owner = $2 AND retired_at IS NULL AND fact_id = ANY ($3::text[])
ORDER BY recorded_at, fact_id;

-- name: standing_facts
-- Those are compared that share a key with a new fact, those that are named, and those whose keys nobody has made.
SELECT fact_id, version, kind, tier, state, importance, confidence, uses, times, last_said_at, last_used_at, expires_at,
    recorded_at, embedding IS NOT NULL AS is_embedded,
    (compared_by IS NULL OR compared_by && $3::text[] OR fact_id = ANY ($4::text[])) AS is_compared
FROM facts WHERE tenant = $1 AND owner = $2 AND retired_at IS NULL;

-- name: has_room
-- Whether the tenant has fewer facts than it may: counted no further than that.
SELECT count(*) < $2::bigint FROM (SELECT FROM facts WHERE tenant = $1 AND retired_at IS NULL LIMIT $2::bigint) AS counted;

-- name: insert_fact
INSERT INTO facts (
    tenant, fact_id, version, kind, owner, user_id, subject_type, subject_id, other_type, other_id,
    text, text_hash, category, tier, importance, confidence, keywords, about, source, state,
    trust, quote, quote_job, quote_seq, replaces, agent, job_id, step, conversation, write_key,
    tainted_by, recorded_at, valid_from, last_said_at, retired_at, retired_because, expires_at, expiry_given, times, uses,
    last_used_at, terms, trigrams, embedding, embedding_model, dimensions, quote_at, compared_by
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
    $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21, $22, $23, $24, $25, $26, $27, $28, $29, $30,
    $31, $32, $33, $34, $35, $36, $37, $38, $39, $40,
    $41, $42, $43, $44, $45, $46, $47, $48
);

-- name: retire_fact
UPDATE facts SET state = $4, retired_because = $5, retired_at = $6
WHERE tenant = $1 AND fact_id = $2 AND version = $3 AND retired_at IS NULL;

-- name: say_again
UPDATE facts SET times = times + 1, last_said_at = $4, expires_at = $5, keywords = $6, compared_by = $7
WHERE tenant = $1 AND fact_id = $2 AND version = $3 AND retired_at IS NULL;

-- name: set_vector
-- It does not wait for the disk: a fact whose vector is lost is found by its words, and gets it with the next save.
WITH unhurried AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE facts SET embedding = $4::vector, embedding_model = $5, dimensions = vector_dims($4::vector)
FROM unhurried
WHERE tenant = $1 AND fact_id = $2 AND version = $3;

-- name: set_keys
UPDATE facts SET compared_by = made.keys
FROM jsonb_to_recordset($2) AS made (fact_id text, version integer, keys text[])
WHERE facts.tenant = $1 AND facts.fact_id = made.fact_id AND facts.version = made.version AND compared_by IS NULL;

-- name: add_conflict
INSERT INTO fact_conflicts (tenant, fact_id, other_id, why) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, fact_id, other_id) DO NOTHING;

-- name: forget_old_versions
-- What is history of an owner, but for the newest, and for what a summary stands for: a word that is forgotten there has
-- to be found in the summary.
DELETE FROM facts
WHERE tenant = $1 AND owner = $2 AND summarized_in IS NULL AND retired_at < (
    SELECT retired_at FROM facts
    WHERE tenant = $1 AND owner = $2 AND retired_at IS NOT NULL
    ORDER BY retired_at DESC
    OFFSET $3 - 1 LIMIT 1
);

-- name: note_said
INSERT INTO fact_conversations AS known (tenant, fact_id, conversation, job_id, said, first_at, last_at)
SELECT $1, fact_id, $3, $4, 1, $5, $5 FROM unnest($2::text[]) AS said (fact_id) ORDER BY fact_id
ON CONFLICT (tenant, fact_id, conversation) DO UPDATE SET
    said = known.said + 1, job_id = excluded.job_id, last_at = excluded.last_at;

-- name: conversations_of
SELECT fact_id, conversation, job_id, said, used, first_at, last_at
FROM unnest($2::text[]) AS asked (fact_id)
CROSS JOIN LATERAL (
    SELECT conversation, job_id, said, used, first_at, last_at FROM fact_conversations AS one
    WHERE one.tenant = $1 AND one.fact_id = asked.fact_id ORDER BY last_at DESC, conversation LIMIT $3
) AS newest
ORDER BY fact_id, last_at DESC, conversation;

-- name: forget_conversations
DELETE FROM fact_conversations WHERE tenant = $1 AND fact_id = ANY ($2::text[]);

-- name: sweep_conversations
-- Those in which a fact was used alone: a core fact is told in each conversation of its user.
DELETE FROM fact_conversations WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM fact_conversations WHERE said = 0 AND last_at < $1 ORDER BY last_at LIMIT $2
));

-- name: count_uses
-- Once a key, however often the call is repeated. $5 conversation or null  $6 its job
-- $7: whether the transaction need not wait for the disk. A crash of Postgres may then lose a use, together with its key.
WITH unhurried AS MATERIALIZED (SELECT CASE WHEN $7::boolean THEN set_config('synchronous_commit', 'off', true) END),
counted AS (
    INSERT INTO fact_uses (tenant, fact_id, use_key)
    SELECT $1, fact_id, $3 FROM unhurried, unnest($2::text[]) AS used (fact_id) ORDER BY fact_id
    ON CONFLICT (tenant, fact_id, use_key) DO NOTHING
    RETURNING fact_id
), noted AS (
    INSERT INTO fact_conversations AS known (tenant, fact_id, conversation, job_id, used, first_at, last_at)
    SELECT $1, fact_id, $5::text, $6, 1, $4, $4 FROM counted WHERE $5 IS NOT NULL ORDER BY fact_id
    ON CONFLICT (tenant, fact_id, conversation) DO UPDATE SET
        used = known.used + 1, job_id = excluded.job_id, last_at = excluded.last_at
)
UPDATE facts SET uses = uses + 1, last_used_at = $4
FROM counted
WHERE facts.tenant = $1 AND facts.fact_id = counted.fact_id AND facts.retired_at IS NULL;

-- name: facts_to_recall
-- All facts of one owner, of which there are few, with what they are ranked by.
-- $1 tenant  $2 owner  $3 time that is meant  $4 kinds of trust  $5 the model whose vectors can be compared, or null
-- {known_then}: which versions count at that time, because the index needs to see it.
SELECT {columns}, terms, trigrams, CASE WHEN embedding_model = $5 THEN embedding END AS vector
FROM facts
WHERE tenant = $1 AND owner = $2 AND {known_then} AND trust = ANY ($4::text[]);

-- name: gone_facts
SELECT asked.fact_id
FROM unnest($2::text[]) AS asked (fact_id)
WHERE NOT EXISTS (
    SELECT FROM facts
    WHERE tenant = $1 AND facts.fact_id = asked.fact_id AND owner = $3 AND retired_at IS NULL AND state = 'active'
        AND (expires_at IS NULL OR expires_at > $4)
)
ORDER BY 1;

-- name: conflicts_of
SELECT pair.fact_id, pair.other_id
FROM (
    SELECT fact_id, other_id FROM fact_conflicts WHERE tenant = $1 AND fact_id = ANY ($2::text[])
    UNION
    SELECT other_id, fact_id FROM fact_conflicts WHERE tenant = $1 AND other_id = ANY ($2::text[])
) AS pair (fact_id, other_id)
WHERE EXISTS (
    SELECT FROM facts WHERE tenant = $1 AND facts.fact_id = pair.other_id AND retired_at IS NULL AND state = 'active'
)
ORDER BY 1, 2;

-- name: list_facts
-- $2 kind  $3 owner or null  $4 ids or null  $5 states  $6 category  $7 tier  $8 conversation  $9, $10, $12 after  $11 limit
-- {of_owner}: whether $3 counts, because the index needs to see it.
SELECT * FROM facts
WHERE tenant = $1 AND kind = $2
    AND {of_owner}
    AND ($4::text[] IS NULL OR fact_id = ANY ($4))
    AND state = ANY ($5::text[])
    AND ($6::text IS NULL OR category = $6)
    AND ($7::text IS NULL OR tier = $7)
    AND ($8::text IS NULL OR conversation = $8)
    AND ($9::timestamptz IS NULL OR (recorded_at, fact_id, version) < ($9, $10::text, $12::integer))
ORDER BY recorded_at DESC, fact_id DESC, version DESC
LIMIT $11;

-- name: list_important
SELECT * FROM facts
WHERE tenant = $1 AND owner = $2 AND retired_at IS NULL AND state = ANY ($3::text[])
    AND ($4::text IS NULL OR category = $4) AND (expires_at IS NULL OR expires_at > $6)
ORDER BY importance DESC, last_said_at DESC, fact_id
LIMIT $5;

-- name: lock_fact
SELECT * FROM facts
WHERE tenant = $1 AND fact_id = $2 AND kind = $3 AND retired_at IS NULL;

-- name: note_change
INSERT INTO fact_changes (tenant, change_id, fact_id, version, what, changed_by, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7);

-- name: facts_to_forget
-- What is meant, with the facts that a version of is meant.
SELECT DISTINCT fact_id FROM facts
WHERE tenant = $1 AND (
    user_id = $2 OR owner = ANY ($3::text[]) OR (other_type = $4 AND other_id = $5)
    OR fact_id = ANY ($6::text[]) OR job_id = $7
);

-- name: forget_facts
DELETE FROM facts WHERE tenant = $1 AND fact_id = ANY ($2::text[]);

-- name: forget_uses
DELETE FROM fact_uses WHERE tenant = $1 AND fact_id = ANY ($2::text[]);

-- name: forget_conflicts
DELETE FROM fact_conflicts WHERE tenant = $1 AND (fact_id = ANY ($2::text[]) OR other_id = ANY ($2::text[]));

-- name: forget_changes
DELETE FROM fact_changes WHERE tenant = $1 AND fact_id = ANY ($2::text[]);

-- name: forget_writes
DELETE FROM fact_writes WHERE tenant = $1 AND owner = ANY ($2::text[]);

-- name: ensure_subject
INSERT INTO subjects (tenant, type, id) VALUES ($1, $2, $3) ON CONFLICT (tenant, type, id) DO NOTHING;

-- name: get_subject
SELECT type, id, name, attributes, version, created_at, updated_at,
    (
        SELECT count(*) FROM facts
        WHERE facts.tenant = $1 AND owner = 'subject:' || $2 || '/' || $3 AND retired_at IS NULL AND state = 'active'
    ) AS insights,
    (
        SELECT coalesce(jsonb_agg(jsonb_build_object('type', other_type, 'id', other_id, 'kind', kind)
            ORDER BY kind, other_type, other_id), '[]')
        FROM (
            SELECT other_type, other_id, kind, 0 AS place FROM subject_links WHERE tenant = $1 AND type = $2 AND id = $3
            UNION ALL
            SELECT other_type, other_id, 'named', 1 FROM subject_mentions AS named
            WHERE tenant = $1 AND type = $2 AND id = $3 AND undone_by IS NULL AND EXISTS (
                SELECT FROM facts
                WHERE facts.tenant = $1 AND facts.fact_id = named.fact_id AND retired_at IS NULL AND state = 'active'
            ) AND NOT EXISTS (
                SELECT FROM subject_links AS same WHERE same.tenant = $1 AND same.type = $2 AND same.id = $3
                    AND same.other_type = named.other_type AND same.other_id = named.other_id AND same.kind = 'named'
            )
            ORDER BY place, kind, other_type, other_id
            LIMIT 100
        ) AS linked
    ) AS links
FROM subjects WHERE tenant = $1 AND type = $2 AND id = $3;

-- name: list_subjects
SELECT type, id, name, attributes, version, created_at, updated_at, 0 AS insights, '[]'::jsonb AS links
FROM subjects
WHERE tenant = $1 AND ($2::text IS NULL OR type = $2) AND ($3::text IS NULL OR (type, id) > ($3, $4::text))
ORDER BY type, id
LIMIT $5;

-- name: put_subject
-- No row: it is another version by now.
INSERT INTO subjects AS known (tenant, type, id, name, attributes) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, type, id) DO UPDATE SET
    name = excluded.name, attributes = excluded.attributes,
    name_key = CASE WHEN known.name = excluded.name THEN known.name_key END, version = known.version + 1, updated_at = clock_timestamp()
WHERE $6::integer IS NULL OR known.version = $6
RETURNING version;

-- name: unlink_subject
DELETE FROM subject_links WHERE tenant = $1 AND type = $2 AND id = $3;

-- name: link_subject
-- No row: there is no such other subject.
INSERT INTO subject_links (tenant, type, id, other_type, other_id, kind)
SELECT $1, $2, $3, $4, $5, $6 WHERE EXISTS (SELECT FROM subjects WHERE tenant = $1 AND type = $4 AND id = $5)
ON CONFLICT DO NOTHING
RETURNING kind;

-- name: delete_subject
DELETE FROM subjects WHERE tenant = $1 AND type = $2 AND id = $3 RETURNING id;

-- name: owners_due
-- Where something is out of date, or was neither said nor used for long. $1 tenant  $2 now  $3 not since  $4 limit
SELECT DISTINCT owner FROM facts
WHERE tenant = $1 AND retired_at IS NULL
    AND (expires_at <= $2 OR (tier = 'important' AND greatest(last_said_at, last_used_at) < $3))
ORDER BY owner
LIMIT $4;

-- name: tenants_due
SELECT tenant FROM facts
WHERE retired_at IS NULL AND (expires_at <= $1 OR (tier = 'important' AND greatest(last_said_at, last_used_at) < $2))
UNION
SELECT tenant FROM facts WHERE kind = 'insight' AND NOT linked AND retired_at IS NULL AND state = 'active'
UNION
SELECT tenant FROM subjects WHERE name_key IS NULL
LIMIT $3;

-- name: unnamed_subjects
SELECT type, id, name FROM subjects WHERE tenant = $1 AND name_key IS NULL ORDER BY type, id LIMIT $2;

-- name: set_name_key
UPDATE subjects SET name_key = $4 WHERE tenant = $1 AND type = $2 AND id = $3;

-- name: look_again
UPDATE facts SET linked = false
WHERE tenant = $1 AND kind = 'insight' AND retired_at IS NULL AND linked AND strpos(lower(text), $2) > 0;

-- name: unlinked_facts
SELECT fact_id, version, text, subject_type, subject_id FROM facts
WHERE tenant = $1 AND kind = 'insight' AND NOT linked AND retired_at IS NULL AND state = 'active'
ORDER BY recorded_at, fact_id
LIMIT $2;

-- name: subjects_named
SELECT type, id, name, name_key FROM subjects WHERE tenant = $1 AND name_key = ANY ($2::text[]) ORDER BY type, id;

-- name: note_mention
-- No row: it is known, or was taken back. An insight that counts takes the place of one that does so no more.
INSERT INTO subject_mentions AS known (tenant, type, id, other_type, other_id, fact_id)
SELECT $1, $2, $3, $4, $5, $6
WHERE EXISTS (SELECT FROM subjects WHERE tenant = $1 AND type = $2 AND id = $3)
ON CONFLICT (tenant, type, id, other_type, other_id) DO UPDATE SET fact_id = excluded.fact_id
WHERE known.undone_by IS NULL AND NOT EXISTS (
    SELECT FROM facts
    WHERE facts.tenant = $1 AND facts.fact_id = known.fact_id AND retired_at IS NULL AND state = 'active'
)
RETURNING fact_id;

-- name: undo_mention
UPDATE subject_mentions SET undone_by = $6
WHERE tenant = $1 AND type = $2 AND id = $3 AND other_type = $4 AND other_id = $5 AND undone_by IS NULL
RETURNING fact_id;

-- name: set_linked
UPDATE facts SET linked = true
FROM unnest($2::text[], $3::integer[]) AS looked (fact_id, version)
WHERE facts.tenant = $1 AND facts.fact_id = looked.fact_id AND facts.version = looked.version;

-- name: forget_mentions
DELETE FROM subject_mentions WHERE tenant = $1 AND fact_id = ANY ($2::text[]);

-- name: absorb_fact
UPDATE facts SET times = times + $4 WHERE tenant = $1 AND fact_id = $2 AND version = $3 AND retired_at IS NULL;

-- name: note_step
INSERT INTO fact_changes (tenant, change_id, fact_id, version, what, changed_by, reason, run_id, before)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: steps_of_run
SELECT fact_id, version, what, before FROM fact_changes WHERE tenant = $1 AND run_id = $2 ORDER BY change_id DESC;

-- name: end_run
UPDATE fact_changes SET run_id = NULL, reason = coalesce(reason, '') || ' (undone by ' || $3::text || ')'
WHERE tenant = $1 AND run_id = $2;

-- name: owner_of_fact
SELECT owner FROM facts WHERE tenant = $1 AND fact_id = $2 LIMIT 1;

-- name: bring_back
-- No row: the fact has another version by now, or is forgotten.
UPDATE facts SET state = $4, retired_at = NULL, retired_because = NULL, summarized_in = NULL, expires_at = $5
WHERE tenant = $1 AND fact_id = $2 AND version = $3 AND retired_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM facts AS other WHERE other.tenant = $1 AND other.fact_id = $2 AND other.retired_at IS NULL
)
RETURNING fact_id;

-- name: live_version
SELECT version, times FROM facts WHERE tenant = $1 AND fact_id = $2 AND retired_at IS NULL;

-- name: note_summarized
-- In the transaction that retired them, of which the version that was live is the newest.
UPDATE facts SET summarized_in = $3
WHERE tenant = $1 AND fact_id = ANY ($2::text[]) AND state = 'superseded' AND version = (
    SELECT max(version) FROM facts AS newest WHERE newest.tenant = $1 AND newest.fact_id = facts.fact_id
);

-- name: take_back_summary
-- No row: it was changed since, or is gone.
UPDATE facts SET state = 'superseded', retired_because = 'undone', retired_at = $4
WHERE tenant = $1 AND fact_id = $2 AND version = $3 AND retired_at IS NULL
RETURNING fact_id;

-- name: summary_stands
-- Whether a summary counts, or its words are in another fact by now. No row: it is gone.
SELECT bool_or(retired_at IS NULL) OR (
    array_agg(state = 'superseded' AND retired_because IS DISTINCT FROM 'undone' ORDER BY version DESC)
)[1]
FROM facts WHERE tenant = $1 AND fact_id = $2;

-- name: summarized_in
SELECT summarized_in, fact_id, version, text, quote, quote_job, quote_seq, quote_at, job_id, step FROM facts
WHERE tenant = $1 AND summarized_in = ANY ($2::text[]) ORDER BY recorded_at, fact_id;

-- name: with_summarized
-- Facts, and those that they stand for.
WITH RECURSIVE meant AS (
    SELECT unnest($2::text[]) AS fact_id
    UNION
    SELECT facts.fact_id FROM meant JOIN facts ON facts.tenant = $1 AND facts.summarized_in = meant.fact_id
)
SELECT fact_id FROM meant;

-- name: with_summaries
-- Facts, and the summaries that stand for them, or did until they were undone: their history has the words too.
WITH RECURSIVE meant AS (
    SELECT unnest($2::text[]) AS fact_id
    UNION
    SELECT summary.fact_id FROM meant CROSS JOIN LATERAL (
        SELECT summarized_in FROM facts
        WHERE tenant = $1 AND fact_id = meant.fact_id AND summarized_in IS NOT NULL
        UNION
        SELECT before ->> 'into' FROM fact_changes
        WHERE tenant = $1 AND fact_id = meant.fact_id AND what = 'summarized'
    ) AS summary (fact_id)
)
SELECT fact_id FROM meant;

-- name: bring_back_summarized
-- What a summary among $2 stands for counts again, unless it goes too.
UPDATE facts SET state = 'active', retired_at = NULL, retired_because = NULL, summarized_in = NULL
WHERE tenant = $1 AND summarized_in = ANY ($2::text[]) AND NOT fact_id = ANY ($2::text[]) AND NOT EXISTS (
    SELECT FROM facts AS other WHERE other.tenant = $1 AND other.fact_id = facts.fact_id AND other.retired_at IS NULL
);
