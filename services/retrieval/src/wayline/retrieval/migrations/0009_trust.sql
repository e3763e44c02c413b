-- migrate:up

-- Whether a document holds the words of strangers, which taint the jobs that read them. What was added before is trusted
-- as it was then, unless it is from an address.
ALTER TABLE documents ADD COLUMN IF NOT EXISTS trust text NOT NULL DEFAULT 'trusted'
    CHECK (trust IN ('trusted', 'untrusted'));
SELECT set_config('wayline.tenant', '*', true);
UPDATE documents SET trust = 'untrusted'
WHERE concat_ws(
    ' ', name, metadata ->> 'url', metadata ->> 'source_url', metadata ->> 'source', metadata ->> 'uri', metadata ->> 'link'
) ~* '(^| )https?://';

-- migrate:down
ALTER TABLE documents DROP COLUMN trust;
