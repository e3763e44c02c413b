-- Leases are given, extended and judged by the clock of the database alone.

-- name: begin
INSERT INTO calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until, content_hash)
SELECT $1, $2, $3, $4, $5, 'started', 1, $6, clock_timestamp() + make_interval(secs => $7), $9
WHERE clock_timestamp() < $8
ON CONFLICT (tenant, key) DO NOTHING
RETURNING attempt;

-- name: find
SELECT state, effect, attempt, owner, result::text AS result, content_hash,
       lease_until > clock_timestamp() AS live, clock_timestamp() >= $3 AS late
FROM calls
WHERE tenant = $1 AND key = $2;

-- name: stored
SELECT result::text FROM calls WHERE tenant = $1 AND key = $2 AND state = 'finished';

-- name: take
UPDATE calls
SET attempt = attempt + 1, owner = $4, lease_until = clock_timestamp() + make_interval(secs => $5)
WHERE tenant = $1 AND key = $2 AND state = 'started' AND attempt = $3
  AND lease_until <= clock_timestamp() AND clock_timestamp() < $6
RETURNING attempt;

-- name: renew
UPDATE calls
SET lease_until = clock_timestamp() + make_interval(secs => $5)
WHERE tenant = $1 AND key = $2 AND state = 'started' AND attempt = $3 AND owner = $4
RETURNING attempt;

-- name: finish
-- Also from `unknown`: the call was given up while its holder still waited for the answer.
UPDATE calls
SET state = 'finished', result = $5::text::json, ended_at = clock_timestamp()
WHERE tenant = $1 AND key = $2 AND state IN ('started', 'unknown') AND attempt = $3 AND owner = $4
RETURNING attempt;

-- name: disown
UPDATE calls
SET state = 'unknown', ended_at = clock_timestamp()
WHERE tenant = $1 AND key = $2 AND state = 'started' AND attempt = $3 AND owner = $4
RETURNING attempt;

-- name: give_up
UPDATE calls
SET state = 'unknown', ended_at = clock_timestamp()
WHERE tenant = $1 AND key = $2 AND state = 'started' AND attempt = $3 AND lease_until <= clock_timestamp()
RETURNING attempt;

-- name: resolve
INSERT INTO calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until, result, ended_at)
VALUES ($1, $2, $3, '', 'once', 'finished', 0, '', clock_timestamp(), $4::text::json, clock_timestamp())
ON CONFLICT (tenant, key) DO UPDATE
SET state = 'finished', result = excluded.result, ended_at = excluded.ended_at
WHERE calls.state IN ('started', 'unknown')
RETURNING attempt;

-- name: void
-- Keeps a key from ever beginning: a later begin finds it finished.
INSERT INTO calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until, result, ended_at)
VALUES ($1, $2, $3, $4, 'once', 'finished', 0, '', clock_timestamp(), $5::text::json, clock_timestamp())
ON CONFLICT (tenant, key) DO NOTHING
RETURNING attempt;

-- name: keep_read
-- A read that charged, once its answer is there. That of another read under the key holds what this one charged, too.
INSERT INTO calls (tenant, key, job_id, tool, effect, state, attempt, owner, lease_until, result, ended_at, content_hash)
VALUES ($1, $2, $3, $4, 'read', 'finished', 1, '', clock_timestamp(), $5::text::json, clock_timestamp(), $6)
ON CONFLICT (tenant, key) DO UPDATE
SET job_id = excluded.job_id, tool = excluded.tool, result = excluded.result, ended_at = excluded.ended_at,
    content_hash = excluded.content_hash
WHERE calls.effect = 'read' AND calls.state = 'finished' AND calls.content_hash IS DISTINCT FROM excluded.content_hash
RETURNING attempt;

-- name: lose
-- Ends a call whose holder is gone, for good: a holder that comes back writes nothing more.
UPDATE calls
SET state = 'finished', result = $3::text::json, ended_at = clock_timestamp()
WHERE tenant = $1 AND key = $2
  AND (state = 'unknown' OR state = 'started' AND lease_until <= clock_timestamp())
RETURNING attempt;

-- name: forget
-- Also what was never ended: the job of a call that was left behind is as long over as any other.
DELETE FROM calls
WHERE ended_at < clock_timestamp() - make_interval(days => $1)
    OR ended_at IS NULL AND lease_until < clock_timestamp() - make_interval(days => $1);

-- name: server_revisions
SELECT tenant, name, revision::text, pins::text FROM servers WHERE enabled AND kind = 'mcp';

-- name: servers_of
SELECT tenant, name, config::text, key_id, sealed, enabled, revision::text, saved_at
FROM servers WHERE tenant = $1 AND kind = 'mcp' ORDER BY name;

-- name: services_of
SELECT name, saved_at FROM servers WHERE tenant = $1 AND kind = 'bus' ORDER BY name;

-- name: put_service
-- Returns the kind of server that has the name; none: there are as many services as there may be.
WITH put AS (
    INSERT INTO servers (tenant, name, config, kind)
    SELECT $1, $2, '{}', 'bus'
    WHERE (SELECT count(*) FROM servers WHERE tenant = $1 AND kind = 'bus' AND name <> $2) < $3
    ON CONFLICT (tenant, name) DO NOTHING
    RETURNING kind
)
SELECT kind FROM put UNION ALL SELECT kind FROM servers WHERE tenant = $1 AND name = $2 LIMIT 1;

-- name: server
SELECT tenant, name, config::text, key_id, sealed, enabled, revision::text, saved_at
FROM servers WHERE tenant = $1 AND name = $2 AND kind = 'mcp';

-- name: put_server
-- The approved definitions of a service of this name on the bus do not count for the server.
WITH service AS (
    DELETE FROM definitions USING servers
    WHERE definitions.tenant = $1 AND definitions.server = $2
        AND servers.tenant = $1 AND servers.name = $2 AND servers.kind = 'bus'
)
INSERT INTO servers (tenant, name, config, key_id, sealed, enabled, shown_sha256, secret_names)
SELECT $1, $2, $3::text::json, $4, $5, coalesce($7::boolean, true), $8, $9
WHERE (SELECT count(*) FROM servers WHERE tenant = $1 AND kind = 'mcp' AND name <> $2) < $6
ON CONFLICT (tenant, name) DO UPDATE
SET config = excluded.config, key_id = excluded.key_id, sealed = excluded.sealed,
    enabled = coalesce($7::boolean, servers.enabled),
    revision = gen_random_uuid(), saved_at = clock_timestamp(), kind = 'mcp', shown_sha256 = excluded.shown_sha256,
    secret_names = excluded.secret_names,
    pinned_at = CASE WHEN servers.kind = 'mcp' THEN servers.pinned_at END
RETURNING name;

-- name: delete_server
DELETE FROM servers WHERE tenant = $1 AND name = $2 RETURNING name;

-- name: enable_server
UPDATE servers SET enabled = $3, revision = gen_random_uuid()
WHERE tenant = $1 AND name = $2 AND kind = 'mcp'
RETURNING name;

-- name: servers_of_older_keys
SELECT tenant, name, config::text, key_id, sealed, enabled, revision::text, saved_at
FROM servers WHERE key_id = ANY ($1::text[]) AND (tenant, name) > ($3, $4) ORDER BY tenant, name LIMIT $2;

-- name: seal_server
-- The revision stays: nothing has changed for those connected.
UPDATE servers SET key_id = $4, sealed = $5
WHERE tenant = $1 AND name = $2 AND sealed = $3
RETURNING name;

-- name: put_secret
-- Servers that refer to it are connected again with the new value.
WITH put AS (
    INSERT INTO secrets (tenant, name, key_id, sealed)
    SELECT $1, $2, $3, $4
    WHERE (SELECT count(*) FROM secrets WHERE tenant = $1 AND name <> $2) < $5
    ON CONFLICT (tenant, name) DO UPDATE
    SET key_id = excluded.key_id, sealed = excluded.sealed, saved_at = clock_timestamp()
    RETURNING name, saved_at
),
changed AS (
    UPDATE servers SET revision = gen_random_uuid()
    WHERE tenant = $1 AND $2 = ANY (secret_names) AND EXISTS (SELECT FROM put)
    RETURNING name
)
SELECT name, saved_at, ARRAY(SELECT name FROM changed ORDER BY name) AS used_by FROM put;

-- name: secrets_of
SELECT name, saved_at, ARRAY(
    SELECT servers.name FROM servers WHERE tenant = $1 AND secrets.name = ANY (secret_names) ORDER BY servers.name
) AS used_by
FROM secrets WHERE tenant = $1 ORDER BY name;

-- name: secret_values
SELECT name, key_id, sealed FROM secrets WHERE tenant = $1 AND name = ANY ($2::text[]);

-- name: secret_names
SELECT name FROM secrets WHERE tenant = $1 AND name = ANY ($2::text[]);

-- name: delete_secret
DELETE FROM secrets
WHERE tenant = $1 AND name = $2
    AND NOT EXISTS (SELECT FROM servers WHERE tenant = $1 AND $2 = ANY (secret_names))
RETURNING name;

-- name: secrets_of_older_keys
SELECT tenant, name, key_id, sealed FROM secrets
WHERE key_id = ANY ($1::text[]) AND (tenant, name) > ($3, $4) ORDER BY tenant, name LIMIT $2;

-- name: rows_of_older_keys
-- Logins under way too: they end by themselves, within ten minutes.
SELECT key_id, count(*) AS rows FROM (
    SELECT key_id FROM servers WHERE key_id IS NOT NULL
    UNION ALL SELECT key_id FROM authorizations
    UNION ALL SELECT key_id FROM secrets
    UNION ALL SELECT key_id FROM logins WHERE expires_at > clock_timestamp()
) AS sealed
WHERE key_id <> $1
GROUP BY key_id;

-- name: seal_secret
UPDATE secrets SET key_id = $4, sealed = $5
WHERE tenant = $1 AND name = $2 AND sealed = $3
RETURNING name;

-- name: pins
-- No row: there is no such server.
SELECT pinned_at IS NOT NULL AS begun, shown_sha256, tool, approved_sha256, waiting_sha256
FROM servers LEFT JOIN definitions ON definitions.tenant = servers.tenant AND definitions.server = servers.name
WHERE servers.tenant = $1 AND servers.name = $2;

-- name: approved_definitions
-- One row at least for a server that was reached once; none of its tools where its instructions wait for approval.
SELECT approved
FROM servers LEFT JOIN definitions
    ON definitions.tenant = servers.tenant AND definitions.server = servers.name
    AND tool <> '' AND approved IS NOT NULL AND waiting_sha256 IS NULL AND NOT EXISTS (
        SELECT FROM definitions AS instructions
        WHERE instructions.tenant = servers.tenant AND instructions.server = servers.name AND instructions.tool = ''
            AND instructions.waiting_sha256 IS NOT NULL
    )
WHERE servers.tenant = $1 AND servers.name = $2 AND pinned_at IS NOT NULL;

-- name: pin_first
-- One replica pins what a server offers first; the others read it.
WITH first AS (
    UPDATE servers SET pinned_at = clock_timestamp()
    WHERE tenant = $1 AND name = $2 AND pinned_at IS NULL
    RETURNING tenant, name
),
pinned AS (
    INSERT INTO definitions (tenant, server, tool, approved_sha256, approved, approved_at)
    SELECT first.tenant, first.name, tool, sha256, definition, clock_timestamp()
    FROM first, unnest($3::text[], $4::text[], $5::text[]) AS offered (tool, sha256, definition)
)
SELECT name FROM first;

-- name: hold_definitions
INSERT INTO definitions (tenant, server, tool, waiting_sha256, waiting, waiting_since)
SELECT $1, $2, tool, sha256, definition, clock_timestamp()
FROM unnest($3::text[], $4::text[], $5::text[]) AS offered (tool, sha256, definition)
ON CONFLICT (tenant, server, tool) DO UPDATE
SET waiting_sha256 = excluded.waiting_sha256, waiting = excluded.waiting, waiting_since = excluded.waiting_since
-- It may have been approved since it was compared.
WHERE definitions.approved_sha256 IS DISTINCT FROM excluded.waiting_sha256;

-- name: release_definitions
-- What waits is offered no more, or is as it was approved again.
WITH gone AS (
    DELETE FROM definitions
    WHERE tenant = $1 AND server = $2 AND tool = ANY ($3::text[]) AND approved_sha256 IS NULL
)
UPDATE definitions SET waiting_sha256 = NULL, waiting = NULL, waiting_since = NULL
WHERE tenant = $1 AND server = $2 AND tool = ANY ($3::text[]) AND approved_sha256 IS NOT NULL;

-- name: waiting_definitions
SELECT tool, approved_sha256, approved, waiting_sha256, waiting, waiting_since
FROM definitions WHERE tenant = $1 AND server = $2 AND waiting_sha256 IS NOT NULL
    AND ($4::text[] IS NULL OR tool = ANY ($4))
ORDER BY tool LIMIT $3;

-- name: untold_definitions
SELECT tenant, server, tool, waiting_sha256, waiting_since FROM definitions
WHERE waiting_sha256 IS NOT NULL AND told_sha256 IS DISTINCT FROM waiting_sha256
ORDER BY waiting_since LIMIT $1;

-- name: note_told
UPDATE definitions SET told_sha256 = $4 WHERE tenant = $1 AND server = $2 AND tool = $3;

-- name: waiting_tools
SELECT tool FROM definitions WHERE tenant = $1 AND server = $2 AND waiting_sha256 IS NOT NULL;

-- name: pinned_tools
SELECT tool, approved_sha256, waiting_sha256, waiting
FROM definitions WHERE tenant = $1 AND server = $2 AND tool <> '' ORDER BY tool;

-- name: unusable_tools
-- Of servers that are disabled, and what waits for approval; a definition that is longer than $3 is known by its name.
SELECT server, tool, servers.enabled, waiting_sha256 IS NOT NULL AS waits,
    CASE WHEN octet_length(coalesce(approved, waiting)) <= $3 THEN coalesce(approved, waiting) END AS definition
FROM definitions JOIN servers ON servers.tenant = definitions.tenant AND servers.name = definitions.server
WHERE definitions.tenant = $1 AND tool <> '' AND (
    NOT servers.enabled OR waiting_sha256 IS NOT NULL OR EXISTS (
        SELECT FROM definitions AS instructions
        WHERE instructions.tenant = $1 AND instructions.server = definitions.server AND instructions.tool = ''
            AND instructions.waiting_sha256 IS NOT NULL
    )
)
ORDER BY server, tool LIMIT $2;

-- name: waiting_counts
SELECT server, count(*) AS waiting FROM definitions
WHERE tenant = $1 AND waiting_sha256 IS NOT NULL GROUP BY server;

-- name: lock_definitions
SELECT approved_sha256, waiting_sha256 FROM definitions WHERE tenant = $1 AND server = $2 FOR UPDATE;

-- name: approve_definitions
WITH approved AS (
    UPDATE definitions
    SET approved_sha256 = waiting_sha256, approved = waiting, approved_at = clock_timestamp(),
        waiting_sha256 = NULL, waiting = NULL, waiting_since = NULL
    WHERE tenant = $1 AND server = $2 AND waiting_sha256 = ANY ($3::text[])
    RETURNING tool
)
UPDATE servers SET pins = gen_random_uuid()
WHERE tenant = $1 AND name = $2 AND EXISTS (SELECT 1 FROM approved);

-- name: begin_login
-- Of one server a few logins may be open at once; those that were never finished go with the next one.
WITH gone AS (
    DELETE FROM logins WHERE tenant = $1 AND expires_at <= clock_timestamp()
)
INSERT INTO logins (tenant, state_sha256, server, user_id, key_id, sealed, expires_at)
SELECT $1, $2, $3, $4, $5, $6, clock_timestamp() + make_interval(secs => $7)
WHERE (SELECT count(*) FROM logins WHERE tenant = $1 AND expires_at > clock_timestamp()) < $8
RETURNING server;

-- name: logged_in_users
SELECT count(*) FROM authorizations WHERE tenant = $1 AND server = $2 AND user_id <> $3;

-- name: login
SELECT server, user_id, key_id, sealed, expires_at > clock_timestamp() AS valid
FROM logins WHERE tenant = $1 AND state_sha256 = $2;

-- name: open_login
UPDATE logins SET browser_sha256 = $3
WHERE tenant = $1 AND state_sha256 = $2
RETURNING server, user_id, key_id, sealed, expires_at > clock_timestamp() AS valid;

-- name: take_login
-- Once: the same state finds nothing the next time, also where another browser brought it.
DELETE FROM logins WHERE tenant = $1 AND state_sha256 = $2
RETURNING server, user_id, key_id, sealed, expires_at > clock_timestamp() AS valid, browser_sha256;

-- name: put_authorization
-- Replicas connect again with new tokens of the tenant; those of a user are looked at before each call.
WITH put AS (
    INSERT INTO authorizations (tenant, server, user_id, key_id, sealed) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, server, user_id) DO UPDATE
    SET key_id = excluded.key_id, sealed = excluded.sealed, refused_at = NULL,
        saved_at = clock_timestamp(), logged_in_at = clock_timestamp()
    RETURNING server, user_id
)
UPDATE servers SET revision = gen_random_uuid()
WHERE tenant = $1 AND name = (SELECT server FROM put WHERE user_id = '')
RETURNING name;

-- name: authorization
SELECT key_id, sealed, refused_at IS NOT NULL AS refused FROM authorizations
WHERE tenant = $1 AND server = $2 AND user_id = $3;

-- name: logged_in_at
SELECT logged_in_at FROM authorizations
WHERE tenant = $1 AND server = $2 AND user_id = $3 AND refused_at IS NULL;

-- name: logins_of_server
SELECT user_id, logged_in_at, refused_at IS NOT NULL AS refused FROM authorizations
WHERE tenant = $1 AND server = $2 AND user_id > $3 AND ($4::text IS NULL OR user_id = $4)
ORDER BY user_id LIMIT $5;

-- name: claim_authorization
-- One renewal at a time, whichever replica makes it. What it reads comes from the row that it has changed: a snapshot
-- would show tokens that another replica has just replaced, and to use those again is to lose the login.
WITH free AS (
    SELECT tenant, server, user_id FROM authorizations
    WHERE tenant = $1 AND server = $2 AND user_id = $3
        AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
    FOR UPDATE SKIP LOCKED
),
claimed AS (
    UPDATE authorizations SET claim = $4, claimed_until = clock_timestamp() + make_interval(secs => $5)
    FROM free
    WHERE authorizations.tenant = free.tenant AND authorizations.server = free.server
        AND authorizations.user_id = free.user_id
    RETURNING key_id, sealed, refused_at IS NOT NULL AS refused
)
SELECT key_id, sealed, refused, true AS claimed FROM claimed
UNION ALL
SELECT key_id, sealed, refused_at IS NOT NULL, false FROM authorizations
WHERE tenant = $1 AND server = $2 AND user_id = $3 AND NOT EXISTS (SELECT FROM claimed);

-- name: end_claim
UPDATE authorizations SET claim = NULL, claimed_until = NULL
WHERE tenant = $1 AND server = $2 AND user_id = $3 AND claim = $4;

-- name: lock_authorization
-- For a moment, to change what nobody else has changed.
SELECT key_id, sealed, refused_at IS NOT NULL AS refused FROM authorizations
WHERE tenant = $1 AND server = $2 AND user_id = $3
FOR UPDATE;

-- name: renew_authorization
UPDATE authorizations SET key_id = $4, sealed = $5, saved_at = clock_timestamp()
WHERE tenant = $1 AND server = $2 AND user_id = $3;

-- name: refuse_authorization
UPDATE authorizations SET refused_at = clock_timestamp() WHERE tenant = $1 AND server = $2 AND user_id = $3;

-- name: delete_authorization
WITH deleted AS (
    DELETE FROM authorizations WHERE tenant = $1 AND server = $2 AND user_id = $3
    RETURNING tenant, server, user_id, key_id, sealed
),
changed AS (
    UPDATE servers SET revision = gen_random_uuid() FROM deleted
    WHERE servers.tenant = deleted.tenant AND servers.name = deleted.server AND deleted.user_id = ''
)
SELECT key_id, sealed FROM deleted;

-- name: delete_authorizations_of_user
WITH begun AS (
    DELETE FROM logins WHERE tenant = $1 AND user_id = $2
)
DELETE FROM authorizations WHERE tenant = $1 AND user_id = $2 RETURNING server, key_id, sealed;

-- name: authorizations_of_older_keys
SELECT tenant, server, user_id, key_id, sealed FROM authorizations
WHERE key_id = ANY ($1::text[]) AND (tenant, server, user_id) > ($3, $4, $5)
ORDER BY tenant, server, user_id LIMIT $2;

-- name: seal_authorization
UPDATE authorizations SET key_id = $5, sealed = $6
WHERE tenant = $1 AND server = $2 AND user_id = $3 AND sealed = $4
RETURNING server;

-- name: count_erasable
SELECT
    (SELECT count(*) FROM calls WHERE tenant = $1 AND job_id = ANY ($3::text[])) AS tool_calls,
    (SELECT count(*) FROM authorizations WHERE tenant = $1 AND user_id = $2) AS authorizations,
    (SELECT count(*) FROM logins WHERE tenant = $1 AND user_id = $2) AS logins;

-- name: erase_calls
DELETE FROM calls WHERE tenant = $1 AND job_id = ANY ($2::text[]);
