-- What the account could spend right after the entry: allowance plus top-up. NULL only in entries
-- of processes of the previous version, which run until an upgrade is complete.
ALTER TABLE entries ADD COLUMN available_after bigint;

-- One partition after the other, so that each sort is small. Row security is on the parent only.
DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('
            UPDATE entries_%1$s e SET available_after = r.available
            FROM (
                SELECT account_id, id, sum(allowance + topup)
                    OVER (PARTITION BY account_id ORDER BY id)::bigint AS available
                FROM entries_%1$s
            ) r
            WHERE e.account_id = r.account_id AND e.id = r.id', part);
    END LOOP;
END
$$;

-- The account wants an event when less than this is available, in micro-dollars. NULL: no event.
-- `told_low`: whether the event was sent. Reset when the balance is no longer below the amount.
ALTER TABLE balances
    ADD COLUMN alert_below bigint,
    ADD COLUMN told_low boolean NOT NULL DEFAULT false;

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
