-- Increases with every change of URL, transport or credentials, so that a decision about a call
-- applies only to the server that was shown.
ALTER TABLE mcp_servers ADD COLUMN revision integer NOT NULL DEFAULT 1;

-- The approval policies that a subtask inherits from the tasks above it. NULL if there are none.
ALTER TABLE tasks ADD COLUMN inherited_approval jsonb;

-- `sealed`: the call as canonical JSON. A call is made from this text and from nothing else.
-- `approved_digest`: the digest of the text that a person approved. NULL if no approval was needed.
-- `definition_hash` is part of `sealed` now. It stays for workers of the previous version, which
-- run until an upgrade is complete.
ALTER TABLE steps ADD COLUMN sealed text, ADD COLUMN approved_digest text;

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

-- Forced row security also applies to the owner of the table.
ALTER TABLE reviews NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tasks NO FORCE ROW LEVEL SECURITY;
UPDATE reviews r SET
    run = coalesce((SELECT t.run FROM tasks t WHERE t.account_id = r.account_id
                    AND t.id = r.task_id), 1),
    sealed = jsonb_build_object('account', r.account_id, 'task', r.task_id, 'number', r.number,
                                'gate', r.gate, 'nonce', gen_random_uuid(),
                                'items', r.items)::text,
    decided_with = CASE WHEN decided_by IS NOT NULL
                   THEN '{"name": null, "via": "session", "keyId": null}'::jsonb END,
    items = (SELECT coalesce(jsonb_agg(
                CASE WHEN jsonb_typeof(item -> 'decidedBy') = 'string'
                THEN jsonb_set(item, '{decidedBy}', jsonb_build_object(
                    'userId', item -> 'decidedBy', 'name', NULL, 'via', 'session', 'keyId', NULL))
                ELSE item END ORDER BY position), '[]')
             FROM jsonb_array_elements(r.items) WITH ORDINALITY AS i (item, position));
UPDATE reviews SET digest = encode(sha256(convert_to(sealed, 'UTF8')), 'hex');
ALTER TABLE tasks FORCE ROW LEVEL SECURITY;
ALTER TABLE reviews FORCE ROW LEVEL SECURITY;
ALTER TABLE reviews
    ALTER COLUMN run SET NOT NULL,
    ALTER COLUMN sealed SET NOT NULL,
    ALTER COLUMN digest SET NOT NULL;
