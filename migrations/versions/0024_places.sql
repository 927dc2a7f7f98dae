-- How many of the agent's tasks can run at the same time in one account. NULL: no limit.
ALTER TABLE agent_versions ADD COLUMN max_concurrent integer;
ALTER TABLE agent_versions
    ADD CONSTRAINT agent_versions_max_concurrent_check CHECK (max_concurrent > 0) NOT VALID;
CREATE OR REPLACE VIEW current_agents AS
    SELECT v.name, v.version, v.display_name, v.description, v.department, v.tier, v.tags,
           v.aliases, v.premium, v.required_tier, v.model, v.tools, v.approval, v.budget_cents,
           v.max_steps, v.instructions, v.content_hash, v.created_at, a.search, v.use_for,
           v.describe, v.initials, v.output_schema, v.max_concurrent
    FROM agents a JOIN agent_versions v ON v.name = a.name AND v.version = a.version
    WHERE a.retired_at IS NULL;

-- Whether the task needs a place while it is PENDING or RUNNING.
ALTER TABLE tasks ADD COLUMN limited boolean NOT NULL DEFAULT false;

-- The PENDING and RUNNING tasks of agents with a limit. Those that are not held wait in this order:
-- started ones first, then higher priorities, then older tasks.
CREATE TABLE places (
    account_id uuid NOT NULL,
    task_id    uuid NOT NULL,
    agent      text NOT NULL,
    held       boolean NOT NULL,
    started    boolean NOT NULL,
    priority   double precision NOT NULL,
    PRIMARY KEY (account_id, task_id)
);
CREATE INDEX places_in_order
    ON places (account_id, agent, held, started DESC, priority DESC, task_id);
ALTER TABLE places ENABLE ROW LEVEL SECURITY;
ALTER TABLE places FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON places USING (account_id = current_account_id());
CREATE POLICY relay ON places FOR SELECT TO rota_relay USING (true);
GRANT SELECT, INSERT, UPDATE, DELETE ON places TO rota_app;
GRANT SELECT ON places TO rota_relay;

-- Makes the parked instructions of these tasks of the current account due. Returns their kinds.
-- The table is usually empty when a plan is made, so the function keeps to the index.
CREATE FUNCTION release_parked(tasks uuid[]) RETURNS SETOF text
    LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
    AS $$
    BEGIN
        RETURN QUERY UPDATE outbox SET ready = true, due_at = now()
        WHERE account_id = current_account_id() AND task_id = ANY(tasks)
          AND due_at = 'infinity' AND dead_at IS NULL
        RETURNING kind;
    END
    $$;
REVOKE EXECUTE ON FUNCTION release_parked(uuid[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION release_parked(uuid[]) TO rota_app;
