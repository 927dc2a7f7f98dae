-- A task that is created again and again, at the times of a cron expression.
CREATE TABLE schedules (
    account_id   uuid NOT NULL,
    id           uuid NOT NULL,
    name         text NOT NULL,
    cron         text NOT NULL,
    time_zone    text NOT NULL,
    -- The body of POST /api/tasks. Not jsonb, which would lose the order of a schema's properties.
    task         json NOT NULL,
    overlap      text NOT NULL CHECK (overlap IN ('skip', 'queue')),
    paused       boolean NOT NULL,
    -- The next time of the schedule, or a past one that waits. NULL while paused.
    next_at      timestamptz,
    -- When a worker looks at the row. Later than next_at while the time waits.
    check_at     timestamptz,
    -- The user who saved it last, and the API key that was used. The tasks are theirs.
    saved_by     uuid NOT NULL,
    saved_with   uuid,
    -- What happened at the last time of the schedule.
    last_due_at  timestamptz,
    last_outcome text CHECK (last_outcome IN ('created', 'skipped', 'failed')),
    last_error   jsonb,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    CHECK ((next_at IS NULL) = (check_at IS NULL))
);
-- For the sweep that finds due schedules of all accounts.
CREATE INDEX schedules_due ON schedules (check_at) WHERE check_at IS NOT NULL;

-- The newest tasks of each schedule.
CREATE TABLE schedule_tasks (
    account_id  uuid NOT NULL,
    schedule_id uuid NOT NULL,
    task_id     uuid NOT NULL,
    PRIMARY KEY (account_id, schedule_id, task_id),
    FOREIGN KEY (account_id, schedule_id) REFERENCES schedules ON DELETE CASCADE
);

GRANT SELECT, INSERT, UPDATE, DELETE ON schedules, schedule_tasks TO rota_app;

DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY['schedules', 'schedule_tasks'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (account_id = current_account_id())', tenant);
    END LOOP;
END
$$;
CREATE POLICY relay ON schedules FOR SELECT TO rota_relay USING (true);
