-- migrate:up
-- A service on the bus is a row without a configuration: its definitions are pinned like those of MCP servers.
ALTER TABLE servers ADD COLUMN kind text NOT NULL DEFAULT 'mcp' CHECK (kind IN ('mcp', 'bus'));

-- migrate:down
DELETE FROM servers WHERE kind = 'bus';
ALTER TABLE servers DROP COLUMN kind;
