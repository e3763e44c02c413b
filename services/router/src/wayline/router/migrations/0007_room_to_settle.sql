-- migrate:up

-- One transaction settles many neighbours: room for it in their pages saves writing their indexes again.
ALTER TABLE reservations SET (fillfactor = 50, autovacuum_analyze_scale_factor = 1);

-- migrate:down
ALTER TABLE reservations RESET (fillfactor, autovacuum_analyze_scale_factor);
