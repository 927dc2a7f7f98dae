ALTER TABLE outbox
    -- Each lane has its own relay, so that a backlog of one does not slow down the others.
    ADD COLUMN lane text NOT NULL GENERATED ALWAYS AS (split_part(kind, '.', 1)) STORED,
    -- false: no relay needs to look at the row before due_at. A claim sets due_at to the end of its
    -- lease, so the row becomes due again if the relay dies.
    ADD COLUMN ready boolean NOT NULL DEFAULT true,
    -- An account has at most one instruction with the same key.
    ADD COLUMN key text,
    -- Why the last attempt failed.
    ADD COLUMN error text,
    -- Since when no relay tries it again. due_at is then infinity.
    ADD COLUMN dead_at timestamptz;

ALTER TABLE outbox NO FORCE ROW LEVEL SECURITY;
UPDATE outbox SET ready = false WHERE due_at > now();
DELETE FROM outbox o USING outbox f
WHERE o.kind = 'run.check' AND f.kind = o.kind AND f.account_id = o.account_id
  AND f.task_id = o.task_id AND f.payload->'run' = o.payload->'run' AND f.id < o.id;
UPDATE outbox SET key = 'run.check/' || task_id || '/' || (payload->>'run')
WHERE kind = 'run.check';
ALTER TABLE outbox FORCE ROW LEVEL SECURITY;

DROP INDEX outbox_due;
-- To find the accounts with due instructions without reading all of their rows.
CREATE INDEX outbox_ready ON outbox (lane, account_id, due_at, id) WHERE ready;
CREATE INDEX outbox_later ON outbox (lane, due_at) WHERE NOT ready;
CREATE INDEX outbox_by_task ON outbox (account_id, task_id) WHERE task_id IS NOT NULL;
CREATE UNIQUE INDEX outbox_keys ON outbox (account_id, key) WHERE key IS NOT NULL;
CREATE INDEX outbox_dead ON outbox (id) WHERE dead_at IS NOT NULL;

-- Deletes the current account's instructions about a task. The table is usually empty when a plan is
-- made, so the function keeps to the index.
CREATE FUNCTION drop_instructions(task uuid, kinds text[]) RETURNS void
    LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
    AS $$
    BEGIN
        DELETE FROM outbox
        WHERE account_id = current_account_id() AND task_id = task AND kind = ANY(kinds);
    END
    $$;
REVOKE EXECUTE ON FUNCTION drop_instructions(uuid, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION drop_instructions(uuid, text[]) TO rota_app;

-- Rows live for a moment, so a share of the table says little about what there is to clean up.
ALTER TABLE outbox SET (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 5000
);
