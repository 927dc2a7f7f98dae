CREATE TABLE mcp_servers (
    account_id      uuid NOT NULL,
    id              uuid NOT NULL,
    name            text NOT NULL,
    url             text NOT NULL,
    transport       text NOT NULL CHECK (transport IN ('streamable-http', 'sse')),
    status          text NOT NULL CHECK (status IN
        ('CONNECTED', 'UNREACHABLE', 'AUTH_FAILED', 'CHANGED')),
    -- The tools that agents and invoke can use. NULL means all tools.
    allowed_tools   text[],
    -- Encrypted headers. The account, the row and the column are bound into the encryption.
    sealed_headers  bytea,
    last_error      text,
    last_checked_at timestamptz NOT NULL,
    check_due_at    timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    CONSTRAINT mcp_servers_name UNIQUE (account_id, name),
    CONSTRAINT mcp_servers_url UNIQUE (account_id, url)
);
-- For the sweep that checks all servers, and for rotating the service key.
CREATE INDEX mcp_servers_due ON mcp_servers (check_due_at);
CREATE INDEX mcp_servers_sealed ON mcp_servers (account_id, id) WHERE sealed_headers IS NOT NULL;

-- `accepted` is the definition that a person has accepted, NULL before that. `live` is the
-- definition that the server offers now, NULL if it no longer offers the tool. A tool is used only
-- while both are equal.
CREATE TABLE mcp_tools (
    account_id    uuid NOT NULL,
    server_id     uuid NOT NULL,
    name          text NOT NULL,
    position      integer NOT NULL,
    accepted      json,
    accepted_hash text,
    live          json,
    live_hash     text,
    PRIMARY KEY (account_id, server_id, name),
    FOREIGN KEY (account_id, server_id) REFERENCES mcp_servers (account_id, id) ON DELETE CASCADE
);

GRANT SELECT, INSERT, UPDATE, DELETE ON mcp_servers, mcp_tools TO rota_app;

DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY['mcp_servers', 'mcp_tools'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (account_id = current_account_id())', tenant);
    END LOOP;
END
$$;
-- The sweep and the rotation of the service key read and update rows of all accounts.
CREATE POLICY relay_reads ON mcp_servers FOR SELECT USING (is_relay());
CREATE POLICY relay_writes ON mcp_servers FOR UPDATE USING (is_relay());
CREATE POLICY relay_reads ON idempotency_keys FOR SELECT USING (is_relay());
CREATE POLICY relay_writes ON idempotency_keys FOR UPDATE USING (is_relay());
