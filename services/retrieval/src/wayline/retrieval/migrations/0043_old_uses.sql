-- migrate:up

-- What is swept by its age: uses and keys that no call repeats any more.
CREATE INDEX fact_uses_oldest ON fact_uses (used_at);
CREATE INDEX fact_writes_oldest ON fact_writes (written_at);

-- migrate:down

DROP INDEX fact_writes_oldest;
DROP INDEX fact_uses_oldest;
