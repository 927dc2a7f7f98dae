-- Endpoints that receive the events of an account.
CREATE TABLE webhooks (
    account_id         uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id                 uuid NOT NULL,
    url                text NOT NULL,
    description        text,
    -- The types that it receives. NULL: all.
    events             text[],
    -- The families of types that the credential that set the types can see. NULL: all.
    families           text[],
    sealed_secret      bytea NOT NULL,
    -- The secret before it, which also signs until then.
    sealed_old_secret  bytea,
    old_secret_until   timestamptz,
    enabled            boolean NOT NULL,
    disabled_reason    text CHECK (disabled_reason IN ('paused', 'failing', 'gone', 'member_removed')),
    disabled_at        timestamptz,
    -- Every event up to this one is confirmed, filtered out, or no longer stored.
    confirmed_sequence bigint NOT NULL,
    -- What the next delivery names as the one before it.
    previous_sequence  bigint NOT NULL,
    -- The events that were deleted before they could be delivered.
    skipped_from       bigint,
    skipped_to         bigint,
    -- When a worker looks at it. NULL: at the next event.
    due_at             timestamptz,
    -- The worker that sends has it until then. Another worker takes it after that.
    leased_until       timestamptz,
    -- Changes of the webhook. A worker that sends with an older one stops.
    revision           integer NOT NULL DEFAULT 1,
    attempts           integer NOT NULL DEFAULT 0,
    failing_since      timestamptz,
    -- When the event happened whose delivery fails.
    behind_since       timestamptz,
    last_error         text,
    delivered_at       timestamptz,
    saved_by           uuid NOT NULL,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    CHECK (enabled = (disabled_reason IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX webhooks_due ON webhooks (due_at) WHERE due_at IS NOT NULL;

-- The newest deliveries of each webhook.
CREATE TABLE webhook_deliveries (
    account_id        uuid NOT NULL,
    webhook_id        uuid NOT NULL,
    id                uuid NOT NULL,
    event_id          uuid NOT NULL,
    sequence          bigint NOT NULL,
    type              text NOT NULL,
    attempt           integer NOT NULL,
    url               text NOT NULL,
    sent_at           timestamptz NOT NULL,
    duration_ms       integer NOT NULL,
    delivered         boolean NOT NULL,
    -- NULL: no response.
    status            integer,
    error             text,
    -- The beginning of both.
    request_body      text NOT NULL,
    response_body     text,
    PRIMARY KEY (account_id, webhook_id, id),
    FOREIGN KEY (account_id, webhook_id) REFERENCES webhooks ON DELETE CASCADE
) PARTITION BY HASH (account_id);
-- For the sweep that deletes old ones of all accounts.
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (sent_at);

DO $$
DECLARE
    tenant text;
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('CREATE TABLE webhook_deliveries_%s PARTITION OF webhook_deliveries
            FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, part);
    END LOOP;
    FOREACH tenant IN ARRAY ARRAY['webhooks', 'webhook_deliveries'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (account_id = current_account_id())', tenant);
        -- Workers send for all accounts, and save what became of it.
        EXECUTE format('CREATE POLICY relay ON %I TO rota_relay USING (true)', tenant);
    END LOOP;
END
$$;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks TO rota_app;
GRANT SELECT, INSERT, DELETE ON webhook_deliveries TO rota_app;

-- To find webhooks that are behind, in all accounts.
CREATE POLICY relay ON account_heads FOR SELECT TO rota_relay USING (true);
