-- In which window of its period a moment is, and whose budgets a job counts in.

-- When a local time comes: for the first time, where clocks are turned back over it; Postgres means the second.
CREATE OR REPLACE FUNCTION first_instant(local timestamp, zone text) RETURNS timestamptz LANGUAGE sql STABLE
RETURN CASE
    WHEN (local AT TIME ZONE zone - interval '1 hour') AT TIME ZONE zone = local
    THEN local AT TIME ZONE zone - interval '1 hour'
    ELSE local AT TIME ZONE zone
END;

CREATE OR REPLACE FUNCTION window_start(at timestamptz, period text, zone text) RETURNS timestamptz
LANGUAGE sql STABLE
RETURN CASE period
    WHEN 'total' THEN '-infinity'::timestamptz
    WHEN 'job' THEN NULL -- each job is a window of its own
    WHEN 'hour' THEN date_trunc('hour', at, zone) -- tells a repeated hour from its twin
    ELSE first_instant(date_trunc(period, at AT TIME ZONE zone), zone)
END;

CREATE OR REPLACE FUNCTION window_end(starts_at timestamptz, period text, zone text) RETURNS timestamptz
LANGUAGE sql STABLE
RETURN CASE period
    WHEN 'total' THEN 'infinity'::timestamptz
    WHEN 'job' THEN NULL
    WHEN 'hour' THEN starts_at + interval '1 hour'
    -- Cut again: where a midnight was skipped, the window began an hour into its day.
    ELSE first_instant(date_trunc(period, starts_at AT TIME ZONE zone) + ('1 ' || period)::interval, zone)
END;

CREATE OR REPLACE FUNCTION in_scope(scope_agent text, scope_user text, job_agent text, job_user text) RETURNS boolean
LANGUAGE sql IMMUTABLE
RETURN (scope_agent IS NULL OR scope_agent = job_agent) AND (scope_user IS NULL OR scope_user IS NOT DISTINCT FROM job_user);
