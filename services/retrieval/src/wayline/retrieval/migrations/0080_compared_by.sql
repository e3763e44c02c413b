-- migrate:up

-- By what a new fact finds those of its owner that it has to be compared with. Null, also where a version wrote it that
-- does not know the column: it is compared with every new one.
ALTER TABLE facts ADD COLUMN compared_by text[];
-- A use is counted in place, without a new entry in each index, where its page has room.
ALTER TABLE facts SET (fillfactor = 85);

-- migrate:down

ALTER TABLE facts RESET (fillfactor);
ALTER TABLE facts DROP COLUMN compared_by;
