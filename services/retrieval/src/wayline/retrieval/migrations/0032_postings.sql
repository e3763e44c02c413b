-- migrate:up

-- The words of many passages at once, for queries whose words are common: of each word the passages that have it, four
-- bytes each, 24 bits the passage's place in the segment and 8 how much the word weighs in it. A segment holds whole
-- documents as they were when it was built; what changed since is ranked by its own words, so a stale place only costs
-- a look.
CREATE TABLE segments (
    tenant text NOT NULL,
    segment bigint GENERATED ALWAYS AS IDENTITY,
    chunks integer NOT NULL,
    PRIMARY KEY (tenant, segment)
);
CREATE TABLE segment_chunks (
    tenant text NOT NULL,
    segment bigint NOT NULL,
    slot integer NOT NULL,
    chunk_id text NOT NULL,
    document_id text NOT NULL,
    PRIMARY KEY (tenant, segment, slot)
);
CREATE TABLE postings (
    tenant text NOT NULL,
    segment bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    postings bytea NOT NULL,
    PRIMARY KEY (tenant, segment, term)
);
-- Slots and weights do not get smaller.
ALTER TABLE postings ALTER COLUMN postings SET STORAGE EXTERNAL;

-- The segment that holds a document's passages of the version with this sequence.
ALTER TABLE documents ADD COLUMN segment bigint, ADD COLUMN segment_sequence bigint;
CREATE INDEX documents_in_no_segment ON documents (tenant, document_id) WHERE segment_sequence IS DISTINCT FROM sequence;
CREATE INDEX documents_in_segment ON documents (tenant, segment);

ALTER TABLE segments ENABLE ROW LEVEL SECURITY;
ALTER TABLE segments FORCE ROW LEVEL SECURITY;
ALTER TABLE segment_chunks ENABLE ROW LEVEL SECURITY;
ALTER TABLE segment_chunks FORCE ROW LEVEL SECURITY;
ALTER TABLE postings ENABLE ROW LEVEL SECURITY;
ALTER TABLE postings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON segments USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
CREATE POLICY tenant ON segment_chunks USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);
CREATE POLICY tenant ON postings USING (
    tenant = (SELECT current_setting('wayline.tenant', true)) OR (SELECT current_setting('wayline.tenant', true)) = '*'
);

-- migrate:down
ALTER TABLE documents DROP COLUMN segment, DROP COLUMN segment_sequence;
DROP TABLE postings, segment_chunks, segments;
