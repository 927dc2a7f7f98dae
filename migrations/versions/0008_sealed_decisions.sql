-- Increases with every change of URL, transport or credentials, so that a decision about a call
-- applies only to the server that was shown.
ALTER TABLE mcp_servers ADD COLUMN revision integer NOT NULL DEFAULT 1;

-- The approval policies that a subtask inherits from the tasks above it. NULL if there are none.
ALTER TABLE tasks ADD COLUMN inherited_approval jsonb;

-- `sealed`: the call as canonical JSON. A call is made from this text and from nothing else.
-- `approved_digest`: the digest of the text that a person approved. NULL if no approval was needed.
-- `maybe_made`: the call was started at least once, and its outcome is unknown.
-- `planned_run`: the run that planned the call, if a retry copied it from there.
-- `definition_hash` is part of `sealed` now. It stays for workers of the previous version, which
-- run until an upgrade is complete.
ALTER TABLE steps
    ADD COLUMN sealed text,
    ADD COLUMN approved_digest text,
    ADD COLUMN maybe_made boolean NOT NULL DEFAULT false,
    ADD COLUMN planned_run integer;

-- `sealed`: what is decided, as canonical JSON. `digest`: its SHA-256. `decided_with`: the name of
-- the user and the credential of the decision. `resumed`: a rejection after which the task goes on.
-- `answers`: recent decisions that were accepted, also about single items and also repeated ones.
ALTER TABLE reviews
    ADD COLUMN run integer,
    ADD COLUMN sealed text,
    ADD COLUMN digest text,
    ADD COLUMN decided_with jsonb,
    ADD COLUMN resumed boolean NOT NULL DEFAULT false,
    ADD COLUMN answers jsonb NOT NULL DEFAULT '[]',
    DROP CONSTRAINT reviews_state_check,
    ADD CONSTRAINT reviews_state_check
        CHECK (state IN ('pending', 'approved', 'rejected', 'expired', 'cancelled'));

-- Reviews that are not sealed: those from before this migration, and those of processes of the
-- previous version while an upgrade is under way.
CREATE FUNCTION seal_review() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.run := coalesce(NEW.run, (SELECT t.run FROM tasks t
                                  WHERE t.account_id = NEW.account_id AND t.id = NEW.task_id), 1);
    NEW.sealed := jsonb_build_object('account', NEW.account_id, 'task', NEW.task_id,
                                     'number', NEW.number, 'gate', NEW.gate,
                                     'nonce', gen_random_uuid(), 'items', NEW.items)::text;
    NEW.digest := encode(sha256(convert_to(NEW.sealed, 'UTF8')), 'hex');
    IF NEW.decided_by IS NOT NULL AND NEW.decided_with IS NULL THEN
        NEW.decided_with := '{"name": null, "via": null, "keyId": null}';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER seal BEFORE INSERT OR UPDATE ON reviews
    FOR EACH ROW WHEN (NEW.sealed IS NULL) EXECUTE FUNCTION seal_review();

-- Forced row security also applies to the owner of the table.
ALTER TABLE reviews NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tasks NO FORCE ROW LEVEL SECURITY;
UPDATE reviews SET items = items;
-- The policies of all hosted tasks above each subtask that can still run.
WITH RECURSIVE above (account_id, id, parent_id) AS (
    SELECT account_id, id, parent_task_id FROM tasks
    WHERE parent_task_id IS NOT NULL AND status NOT IN ('COMPLETED', 'CANCELLED')
    UNION ALL
    SELECT a.account_id, a.id, t.parent_task_id FROM above a
    JOIN tasks t ON t.account_id = a.account_id AND t.id = a.parent_id
    WHERE t.parent_task_id IS NOT NULL
), policies (account_id, id, approval) AS (
    SELECT a.account_id, a.id, jsonb_agg(DISTINCT v.approval) FROM above a
    JOIN tasks p ON p.account_id = a.account_id AND p.id = a.parent_id AND p.hosted
    JOIN agent_versions v ON v.name = p.agent AND v.version = p.agent_version
    GROUP BY a.account_id, a.id
)
UPDATE tasks t SET inherited_approval = p.approval FROM policies p
WHERE t.account_id = p.account_id AND t.id = p.id;
ALTER TABLE tasks FORCE ROW LEVEL SECURITY;
ALTER TABLE reviews FORCE ROW LEVEL SECURITY;
