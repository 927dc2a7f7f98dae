-- The JSON Schema of an agent's output, for tasks that have none of their own. Not jsonb, which
-- would lose the order of the properties.
ALTER TABLE agent_versions ADD COLUMN output_schema json;
CREATE OR REPLACE VIEW current_agents AS
    SELECT v.name, v.version, v.display_name, v.description, v.department, v.tier, v.tags,
           v.aliases, v.premium, v.required_tier, v.model, v.tools, v.approval, v.budget_cents,
           v.max_steps, v.instructions, v.content_hash, v.created_at, a.search, v.use_for,
           v.describe, v.initials, v.output_schema
    FROM agents a JOIN agent_versions v ON v.name = a.name AND v.version = a.version
    WHERE a.retired_at IS NULL;

-- output_schema: what the output of the current run must match. If own_output_schema is false, it
-- is the agent's. budget_limit_cents: what the client allows, NULL for the agent's budget.
ALTER TABLE tasks
    ADD COLUMN output_schema json,
    ADD COLUMN own_output_schema boolean NOT NULL DEFAULT false,
    ADD COLUMN budget_limit_cents integer,
    ADD COLUMN deadline timestamptz;
