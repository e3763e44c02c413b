-- migrate:up transaction:false
-- Jobs whose version was chosen by a label are found by their words, which have it; these have it not, or not yet. Not by
-- an index of the label itself: under row-level security no condition on a part of JSON is looked up in one.
CREATE INDEX CONCURRENTLY jobs_labelled ON jobs (tenant, created_at DESC, job_id DESC)
WHERE beyond ->> 'agent_label' IS NOT NULL AND (words @@ '''$'''::tsquery) IS NOT TRUE;

-- migrate:down transaction:false
DROP INDEX CONCURRENTLY jobs_labelled;
