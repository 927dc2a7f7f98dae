-- `describe`: templates of the sentences that describe tool calls, by server/tool. `initials`: NULL
-- if they are made from the display name.
ALTER TABLE agent_versions
    ADD COLUMN describe jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN initials text;

CREATE OR REPLACE VIEW current_agents AS
    SELECT v.name, v.version, v.display_name, v.description, v.department, v.tier, v.tags,
           v.aliases, v.premium, v.required_tier, v.model, v.tools, v.approval, v.budget_cents,
           v.max_steps, v.instructions, v.content_hash, v.created_at, a.search, v.use_for,
           v.describe, v.initials
    FROM agents a JOIN agent_versions v ON v.name = a.name AND v.version = a.version
    WHERE a.retired_at IS NULL;
