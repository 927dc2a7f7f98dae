-- How many tasks of the agent an account works on at the same time. NULL: any number.
ALTER TABLE agent_versions ADD COLUMN max_concurrent integer CHECK (max_concurrent > 0);
CREATE OR REPLACE VIEW current_agents AS
    SELECT v.name, v.version, v.display_name, v.description, v.department, v.tier, v.tags,
           v.aliases, v.premium, v.required_tier, v.model, v.tools, v.approval, v.budget_cents,
           v.max_steps, v.instructions, v.content_hash, v.created_at, a.search, v.use_for,
           v.describe, v.initials, v.output_schema, v.max_concurrent
    FROM agents a JOIN agent_versions v ON v.name = a.name AND v.version = a.version
    WHERE a.retired_at IS NULL;

-- held: the task has one of its agent's places. queued: it waits for one. NULL: it needs none.
ALTER TABLE tasks ADD COLUMN place text CHECK (place IN ('held', 'queued'));
-- The queries do not use status, because the statistics of a new table would mislead the planner.
CREATE INDEX tasks_held ON tasks (account_id, agent) WHERE place = 'held';
CREATE INDEX tasks_queued ON tasks (account_id, agent, (started_at IS NULL), (-priority), id)
    WHERE place = 'queued';
