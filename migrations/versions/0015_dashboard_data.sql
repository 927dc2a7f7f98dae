-- The history of each server's status. The service keeps the newest 500 rows of a server.
CREATE TABLE mcp_checks (
    account_id uuid NOT NULL,
    server_id  uuid NOT NULL,
    id         uuid NOT NULL,
    checked_at timestamptz NOT NULL,
    status     text NOT NULL,
    -- NULL if the server did not respond, or if nothing was measured.
    latency_ms double precision,
    error      text,
    PRIMARY KEY (account_id, server_id, id),
    FOREIGN KEY (account_id, server_id) REFERENCES mcp_servers (account_id, id) ON DELETE CASCADE
);
GRANT SELECT, INSERT, DELETE ON mcp_checks TO rota_app;
ALTER TABLE mcp_checks ENABLE ROW LEVEL SECURITY;
ALTER TABLE mcp_checks FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON mcp_checks USING (account_id = current_account_id());

-- The name of the user who created the key, at that time. Users can read only their own name.
ALTER TABLE api_keys ADD COLUMN created_by_name text;
ALTER TABLE api_keys NO FORCE ROW LEVEL SECURITY;
ALTER TABLE users NO FORCE ROW LEVEL SECURITY;
UPDATE api_keys k SET created_by_name = coalesce(u.name, u.email) FROM users u
WHERE u.id = k.user_id;
ALTER TABLE users FORCE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
