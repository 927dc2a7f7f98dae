-- One row for each account: the number of its last event, and the number of its tasks in each
-- state. Every change to an account's tasks locks this row first. So event numbers have no gaps,
-- totals are exact, and two changes cannot deadlock. The cost: the writes of one account run one
-- after the other. The account's rate limit bounds their number.
CREATE TABLE account_heads (
    account_id       uuid PRIMARY KEY,
    last_sequence    bigint NOT NULL DEFAULT 0,
    pending          bigint NOT NULL DEFAULT 0,
    running          bigint NOT NULL DEFAULT 0,
    completed        bigint NOT NULL DEFAULT 0,
    failed           bigint NOT NULL DEFAULT 0,
    cancelled        bigint NOT NULL DEFAULT 0,
    waiting_approval bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);  -- Leaves room for updates in place.

CREATE FUNCTION open_account_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO account_heads (account_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    RETURN NEW;
END
$$;
CREATE TRIGGER open_head AFTER INSERT ON accounts
    FOR EACH ROW EXECUTE FUNCTION open_account_head();

-- A task's id is a UUIDv7 and created_at is the time in it, so the primary key is also the order of
-- lists.
CREATE TABLE tasks (
    account_id     uuid NOT NULL,
    id             uuid NOT NULL,
    status         text NOT NULL CHECK (status IN
        ('PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'WAITING_APPROVAL')),
    hosted         boolean NOT NULL,
    depth          smallint NOT NULL DEFAULT 0,
    run            integer NOT NULL DEFAULT 1,
    agent          text,
    agent_version  integer,
    project_id     text,
    parent_task_id uuid,
    name           text NOT NULL,
    priority       double precision NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    started_at     timestamptz,
    finished_at    timestamptz,
    created_by     uuid NOT NULL,
    description    text,
    input          text NOT NULL DEFAULT '',
    output         text,
    actions        text[] NOT NULL DEFAULT '{}',
    error          jsonb,
    steps          integer NOT NULL DEFAULT 0,
    input_tokens   bigint NOT NULL DEFAULT 0,
    output_tokens  bigint NOT NULL DEFAULT 0,
    cost_micros    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account_id, id)
) PARTITION BY HASH (account_id);
CREATE INDEX tasks_by_status ON tasks (account_id, status, id);
CREATE INDEX tasks_by_agent ON tasks (account_id, agent, id) WHERE agent IS NOT NULL;
CREATE INDEX tasks_by_project ON tasks (account_id, project_id, id) WHERE project_id IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (account_id, parent_task_id, id)
    WHERE parent_task_id IS NOT NULL;

-- The number of tasks for each filter by agent, project or parent, and each state.
CREATE TABLE task_counts (
    account_id uuid NOT NULL,
    dimension  text NOT NULL CHECK (dimension IN ('agent', 'project', 'parent')),
    value      text NOT NULL,
    status     text NOT NULL,
    tasks      bigint NOT NULL,
    PRIMARY KEY (account_id, dimension, value, status)
) WITH (fillfactor = 50);

-- One row for each time a task waited for approval, with the decision.
CREATE TABLE reviews (
    account_id   uuid NOT NULL,
    task_id      uuid NOT NULL,
    number       integer NOT NULL,
    state        text NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'expired')),
    gate         text CHECK (gate IN ('run', 'tool', 'output')),
    requested_at timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    decided_at   timestamptz,
    decided_by   uuid,
    reason       text,
    items        jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (account_id, task_id, number)
);
-- For the sweep that finds expired reviews of all accounts.
CREATE INDEX reviews_due ON reviews (expires_at) WHERE state = 'pending';

-- The event journal: append-only, numbered per account without gaps.
CREATE TABLE events (
    account_id uuid NOT NULL,
    sequence   bigint NOT NULL,
    id         uuid NOT NULL,
    type       text NOT NULL,
    task_id    uuid,
    data       jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, sequence)
) PARTITION BY HASH (account_id);
CREATE INDEX events_by_task ON events (account_id, task_id, sequence) WHERE task_id IS NOT NULL;

DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('CREATE TABLE tasks_%s PARTITION OF tasks
            FOR VALUES WITH (MODULUS 16, REMAINDER %s) WITH (fillfactor = 90)', part, part);
        EXECUTE format('CREATE TABLE events_%s PARTITION OF events
            FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, part);
    END LOOP;
END
$$;

-- Instructions for Temporal. The relay of any worker can process a row, and deletes it afterwards.
CREATE TABLE outbox (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account_id uuid NOT NULL,
    kind       text NOT NULL,
    task_id    uuid,
    payload    jsonb NOT NULL,
    attempts   integer NOT NULL DEFAULT 0,
    due_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX outbox_due ON outbox (due_at, id);

-- Encrypted responses to requests with an Idempotency-Key. A repeated request gets the same one.
CREATE TABLE idempotency_keys (
    account_id  uuid NOT NULL,
    key         text NOT NULL,
    fingerprint bytea NOT NULL,
    status      smallint NOT NULL,
    sealed_body bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (account_id, created_at);

-- Forced row security also applies to the owner of the table.
ALTER TABLE accounts NO FORCE ROW LEVEL SECURITY;
INSERT INTO account_heads (account_id) SELECT id FROM accounts;
ALTER TABLE accounts FORCE ROW LEVEL SECURITY;

GRANT SELECT, INSERT, UPDATE ON account_heads, tasks, task_counts, reviews TO rota_app;
GRANT SELECT, INSERT ON events TO rota_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys, outbox TO rota_app;

DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY['account_heads', 'tasks', 'task_counts', 'reviews', 'events',
                                  'idempotency_keys'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (account_id = current_account_id())', tenant);
    END LOOP;
END
$$;
-- Background work for all accounts, such as the relay, sets rota.relay. Requests never do.
CREATE FUNCTION is_relay() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN coalesce(current_setting('rota.relay', true), '') = 'on';
ALTER TABLE outbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE outbox FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON outbox USING (account_id = current_account_id());
CREATE POLICY relay ON outbox USING (is_relay());
CREATE POLICY relay ON reviews FOR SELECT USING (is_relay());
