-- migrate:up
ALTER TABLE ledger
    DROP CONSTRAINT ledger_kind_check,
    ADD CONSTRAINT ledger_kind_check CHECK (kind IN ('model', 'tool', 'aux')),
    ADD COLUMN purpose text, -- of an auxiliary call
    ADD COLUMN saved_usd numeric, -- by the provider's prompt cache; below zero: it cost
    ADD COLUMN lower_usd numeric, -- what a call that is not settled can have cost at least
    ADD COLUMN upper_usd numeric; -- and at most; null: unknown
ALTER TABLE jobs ADD COLUMN costs jsonb;

-- migrate:down
ALTER TABLE jobs DROP COLUMN costs;
DELETE FROM ledger WHERE kind = 'aux';
ALTER TABLE ledger
    DROP COLUMN purpose, DROP COLUMN saved_usd, DROP COLUMN lower_usd, DROP COLUMN upper_usd,
    DROP CONSTRAINT ledger_kind_check,
    ADD CONSTRAINT ledger_kind_check CHECK (kind IN ('model', 'tool'));
