-- How many days the account keeps what is finished. NULL: the operator's default.
-- erased_at: since when the account is being erased. It cannot be used any more.
ALTER TABLE accounts
    ADD COLUMN tasks_days integer,
    ADD COLUMN steps_days integer,
    ADD COLUMN events_days integer,
    ADD COLUMN audit_days integer,
    ADD COLUMN erased_at timestamptz;

-- The lowest number of an event that retention has kept. All before it are deleted.
-- erased: no run can start in the account any more.
ALTER TABLE account_heads
    ADD COLUMN first_sequence bigint NOT NULL DEFAULT 1,
    ADD COLUMN erased boolean NOT NULL DEFAULT false;

-- Charges before this time can be without the step that they paid for: retention has deleted it.
ALTER TABLE balances ADD COLUMN steps_cut_at timestamptz;

-- `grant`: money that the operator gives. NOT VALID: every existing entry has one of the old kinds.
ALTER TABLE entries DROP CONSTRAINT entries_kind_check;
ALTER TABLE entries ADD CONSTRAINT entries_kind_check CHECK (kind IN
    ('allowance', 'top_up', 'hold', 'charge', 'release', 'expiry', 'refund', 'refund_reversal',
     'dispute', 'dispute_reversal', 'grant')) NOT VALID;

-- Where the trail of an account begins: everything up to this entry is deleted. `signed` is the same
-- as a signed document, so that nobody can shorten a trail without the key.
CREATE TABLE audit_checkpoints (
    account_id uuid PRIMARY KEY,
    sequence   bigint NOT NULL CHECK (sequence > 0),
    hash       bytea NOT NULL,
    at         timestamptz NOT NULL,
    signed     text NOT NULL
);
GRANT SELECT ON audit_checkpoints TO rota_app;
GRANT INSERT, UPDATE ON audit_checkpoints TO rota_relay;

-- When retention looks at each account next. steps_before: the steps of older tasks are deleted.
CREATE TABLE retention_turns (
    account_id   uuid PRIMARY KEY,
    due_at       timestamptz NOT NULL,
    steps_before uuid
) WITH (fillfactor = 70);
CREATE INDEX retention_turns_due ON retention_turns (due_at);
GRANT SELECT, INSERT, UPDATE ON retention_turns TO rota_app;

CREATE FUNCTION open_retention_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO retention_turns (account_id, due_at) VALUES (NEW.id, now() + interval '1 day')
    ON CONFLICT DO NOTHING;
    RETURN NEW;
END
$$;
CREATE TRIGGER open_retention_turn AFTER INSERT ON accounts
    FOR EACH ROW EXECUTE FUNCTION open_retention_turn();
-- Forced row security also applies to the owner of the table.
ALTER TABLE accounts NO FORCE ROW LEVEL SECURITY;
INSERT INTO retention_turns (account_id, due_at) SELECT id, now() FROM accounts;
ALTER TABLE accounts FORCE ROW LEVEL SECURITY;

-- Hashes of the identities of erased users. A user who returns gets no second trial or allowance.
CREATE TABLE erased_identities (
    hash bytea PRIMARY KEY
);
GRANT SELECT, INSERT ON erased_identities TO rota_app;

-- Accounts that are being erased, or were. A row stays, to be applied again after a restore.
CREATE TABLE erasures (
    account_id   uuid PRIMARY KEY,
    kind         text NOT NULL CHECK (kind IN ('personal', 'company')),
    requested_at timestamptz NOT NULL,
    -- The user who asked for it. NULL: an operator.
    requested_by uuid,
    -- What the worker does next.
    stage        text NOT NULL,
    -- Rows that were deleted so far.
    rows_erased  bigint NOT NULL DEFAULT 0,
    -- Failed attempts of the stage in a row, and the last failure.
    attempts     integer NOT NULL DEFAULT 0,
    error        text,
    -- When a worker continues. The one that does moves it, so no other takes it.
    due_at       timestamptz,
    finished_at  timestamptz,
    CHECK ((due_at IS NULL) = (finished_at IS NOT NULL))
);
CREATE INDEX erasures_due ON erasures (due_at) WHERE due_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON erasures TO rota_app;

DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY['audit_checkpoints', 'retention_turns', 'erasures'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (account_id = current_account_id())', tenant);
    END LOOP;
END
$$;
CREATE POLICY relay ON retention_turns TO rota_relay USING (true);
CREATE POLICY relay ON erasures TO rota_relay USING (true);
-- For the operator's list of accounts.
CREATE POLICY relay ON accounts FOR SELECT TO rota_relay USING (true);

-- Work that only one worker does at a time.
CREATE TABLE sweeps (
    name       text PRIMARY KEY,
    holder     uuid NOT NULL,
    held_until timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON sweeps TO rota_relay;

-- Only background work deletes these. Nobody can delete or change entries of the ledger.
GRANT DELETE ON tasks, steps, events, reviews, task_words, task_counts, rules, users, sessions,
    account_heads, audit_entries TO rota_relay;
GRANT UPDATE (salt, private) ON audit_entries TO rota_relay;
-- The request that erases an account ends its sign-in at once.
GRANT DELETE ON identities TO rota_app;

-- As before, and the right `data` is for owners only.
CREATE OR REPLACE FUNCTION require_member(needed text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    member members;
BEGIN
    SELECT * INTO member FROM members
    WHERE account_id = current_account_id() AND user_id = current_user_id();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the user is not a member of the account' USING ERRCODE = 'RT403';
    END IF;
    IF needed IS NULL OR member.role = 'owner' OR (member.role = 'admin' AND needed <> 'data') THEN
        RETURN;
    END IF;
    IF needed = 'approve' AND (member.approver OR EXISTS (
        SELECT FROM accounts WHERE id = current_account_id() AND anyone_approves)) THEN
        RETURN;
    END IF;
    RAISE EXCEPTION 'the member lacks the right: %', needed USING ERRCODE = 'RT405';
END
$$;
