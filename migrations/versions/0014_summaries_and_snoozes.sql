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

-- The most that the current run can cost. NULL for a task that its client runs, and for tasks that
-- ended before this was stored.
ALTER TABLE tasks ADD COLUMN budget_cents integer;

-- Forced row security also applies to the owner of the table.
ALTER TABLE tasks NO FORCE ROW LEVEL SECURITY;
UPDATE tasks t SET budget_cents = v.budget_cents FROM agent_versions v
WHERE t.hosted AND t.status NOT IN ('COMPLETED', 'CANCELLED')
  AND v.name = t.agent AND v.version = t.agent_version;
ALTER TABLE tasks FORCE ROW LEVEL SECURITY;

-- Reviews that a user does not want to see before a certain time. The rows of a review are deleted
-- when it ends. `number` is that of the review: a newer one is not put off.
CREATE TABLE review_snoozes (
    account_id uuid NOT NULL,
    task_id    uuid NOT NULL,
    user_id    uuid NOT NULL,
    number     integer NOT NULL,
    until      timestamptz NOT NULL,
    PRIMARY KEY (account_id, task_id, user_id)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON review_snoozes TO rota_app;
ALTER TABLE review_snoozes ENABLE ROW LEVEL SECURITY;
ALTER TABLE review_snoozes FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON review_snoozes USING (account_id = current_account_id());
