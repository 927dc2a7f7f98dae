-- The steps of every run. Call 0 of a step is the model call; calls 1, 2, … are its tool calls.
-- These rows alone determine what a run does next.
CREATE TABLE steps (
    account_id      uuid NOT NULL,
    task_id         uuid NOT NULL,
    run             integer NOT NULL,
    step            integer NOT NULL,
    call            integer NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('model', 'tool')),
    -- planned: can start. gated: waits for approval. started: is running, or its worker crashed.
    -- delegated: waits for a subtask. finished: has its result.
    state           text NOT NULL CHECK (state IN
        ('planned', 'gated', 'started', 'delegated', 'finished')),
    name            text NOT NULL,
    server          text,
    call_id         text,
    read_only       boolean NOT NULL DEFAULT true,
    arguments       jsonb,
    definition_hash text,
    result          jsonb,
    outcome         text,
    -- The reviewer's comment, which the model reads.
    note            text,
    child_task_id   uuid,
    input_tokens    bigint NOT NULL DEFAULT 0,
    output_tokens   bigint NOT NULL DEFAULT 0,
    cost_micros     bigint NOT NULL DEFAULT 0,
    price_version   text,
    -- Copied from the earlier run, which paid for it.
    copied          boolean NOT NULL DEFAULT false,
    planned_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at      timestamptz,
    finished_at     timestamptz,
    PRIMARY KEY (account_id, task_id, run, step, call)
) PARTITION BY HASH (account_id);
CREATE INDEX steps_by_child ON steps (account_id, child_task_id) WHERE child_task_id IS NOT NULL;

DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('CREATE TABLE steps_%s PARTITION OF steps
            FOR VALUES WITH (MODULUS 16, REMAINDER %s) WITH (fillfactor = 80)', part, part);
    END LOOP;
END
$$;

GRANT SELECT, INSERT, UPDATE ON steps TO rota_app;
ALTER TABLE steps ENABLE ROW LEVEL SECURITY;
ALTER TABLE steps FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON steps USING (account_id = current_account_id());
