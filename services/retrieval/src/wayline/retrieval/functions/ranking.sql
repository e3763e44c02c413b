-- How often a term is in a chunk. With all weights 1, ts_rank of one term is (1 + 1/4 + … + 1/n²) / (π²/6); what is
-- missing to the whole series is close to 1 / (n + 1/2). Unnesting the vector would say the same fifty times slower.
-- Not STRICT: that would keep Postgres from inlining it.
CREATE OR REPLACE FUNCTION occurrences(words tsvector, term tsquery) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN floor(1 / (1.64493406685 * greatest(1e-4, 1 - ts_rank('{1,1,1,1}', words, term))) - 0.3);
