-- The policies of an account. `anyone_approves`: every member can approve, not only approvers. A run
-- with a higher budget than `max_cost_cents` waits at a run gate. NULL: no limit.
ALTER TABLE accounts
    ADD COLUMN second_person boolean NOT NULL DEFAULT false,
    ADD COLUMN anyone_approves boolean NOT NULL DEFAULT false,
    ADD COLUMN max_cost_cents integer;

CREATE OR REPLACE FUNCTION require_member(needed text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    member members;
BEGIN
    SELECT * INTO member FROM members
    WHERE account_id = current_account_id() AND user_id = current_user_id();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the user is not a member of the account' USING ERRCODE = 'RT403';
    END IF;
    IF needed IS NULL OR member.role <> 'member' THEN
        RETURN;
    END IF;
    IF needed = 'approve' AND (member.approver OR EXISTS (
        SELECT FROM accounts WHERE id = current_account_id() AND anyone_approves)) THEN
        RETURN;
    END IF;
    RAISE EXCEPTION 'the member lacks the right: %', needed USING ERRCODE = 'RT405';
END
$$;

-- Whether the review was opened while the account required a second person. It stays under it.
ALTER TABLE reviews ADD COLUMN second_person boolean NOT NULL DEFAULT false;

-- Whether a standing rule approved the call, which is for one start of it. `approved_digest` is then
-- what it approved.
ALTER TABLE steps ADD COLUMN approved_by_rule boolean NOT NULL DEFAULT false;

-- Everyone who saved the schedule before the user who saved it last.
ALTER TABLE schedules ADD COLUMN shaped_by uuid[] NOT NULL DEFAULT '{}';

-- Everyone who connected, moved or renamed the server, or changed its credentials.
ALTER TABLE mcp_servers ADD COLUMN shaped_by uuid[] NOT NULL DEFAULT '{}';

-- Who shaped a task after or besides its creation. The creator is in `tasks`.
CREATE TABLE task_shapers (
    account_id uuid NOT NULL,
    task_id    uuid NOT NULL,
    user_id    uuid NOT NULL,
    how        text NOT NULL,
    PRIMARY KEY (account_id, task_id, user_id, how)
);
GRANT SELECT, INSERT, DELETE ON task_shapers TO rota_app;

-- Standing rules: calls of one tool that an agent can make without a review.
CREATE TABLE rules (
    account_id      uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id              uuid NOT NULL,
    server_id       uuid NOT NULL,
    tool            text NOT NULL,
    agent           text NOT NULL,
    -- What the rule is bound to. With another revision, definition or version, it does not work.
    server_revision integer NOT NULL,
    definition_hash text NOT NULL,
    agent_version   integer NOT NULL,
    -- A condition for each argument. As text, because jsonb changes some numbers.
    arguments       text NOT NULL,
    expires_at      timestamptz NOT NULL,
    max_uses        integer NOT NULL CHECK (max_uses > 0),
    uses            integer NOT NULL DEFAULT 0 CHECK (uses BETWEEN 0 AND max_uses),
    created_by      uuid NOT NULL,
    created_by_name text,
    created_at      timestamptz NOT NULL,
    revoked_at      timestamptz,
    revoked_by      uuid,
    PRIMARY KEY (account_id, id)
);
-- The rules that may cover a call.
CREATE INDEX rules_in_force ON rules (account_id, server_id, tool, agent) WHERE revoked_at IS NULL;
GRANT SELECT, INSERT, UPDATE ON rules TO rota_app;

DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY['task_shapers', 'rules'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (account_id = current_account_id())', tenant);
    END LOOP;
END
$$;
