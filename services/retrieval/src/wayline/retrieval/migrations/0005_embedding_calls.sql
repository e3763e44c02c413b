-- migrate:up

-- Paid calls of the embedding provider until they have been reported: a row is there before the call is made, so that
-- none is forgotten, whoever is killed.
CREATE TABLE embedding_calls (
    tenant text NOT NULL,
    charge_id text NOT NULL,
    model text NOT NULL,
    worst_usd numeric, -- null: nobody has said what the model costs
    input_tokens bigint NOT NULL DEFAULT 0,
    cost_usd numeric,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'answered', 'refused', 'lost')),
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, charge_id)
);
ALTER TABLE embedding_calls ENABLE ROW LEVEL SECURITY;
ALTER TABLE embedding_calls FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON embedding_calls USING (
    tenant = current_setting('wayline.tenant', true) OR current_setting('wayline.tenant', true) = '*'
);

-- migrate:down
DROP TABLE embedding_calls;
