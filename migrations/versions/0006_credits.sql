-- Money is in micro-dollars: a cent is 10,000.
--
-- An account has eight books:
--   allowance, topup            money that it can spend
--   held_allowance, held_topup  money on hold for its runs
--   spent                       money that it has spent
--   owed                        money that it spent and could not pay; never above zero
--   granted, outside            where money came from (allowances, payments); negative

-- Each entry is one row that moves money between books. The service can only add rows.
CREATE TABLE entries (
    account_id     uuid NOT NULL,
    id             uuid NOT NULL,
    kind           text NOT NULL CHECK (kind IN
        ('allowance', 'top_up', 'hold', 'charge', 'release', 'expiry', 'refund')),
    -- Identifies the operation, so that it is entered only once.
    key            text NOT NULL,
    at             timestamptz NOT NULL,
    allowance      bigint NOT NULL DEFAULT 0,
    topup          bigint NOT NULL DEFAULT 0,
    held_allowance bigint NOT NULL DEFAULT 0,
    held_topup     bigint NOT NULL DEFAULT 0,
    spent          bigint NOT NULL DEFAULT 0,
    owed           bigint NOT NULL DEFAULT 0,
    granted        bigint NOT NULL DEFAULT 0,
    outside        bigint NOT NULL DEFAULT 0,
    task_id        uuid,
    run            integer,
    step           integer,
    model          text,
    price_version  text,
    -- The amount of a charge before it was limited to its hold.
    cost           bigint,
    -- The payment's ID at the payment processor.
    reference      text,
    PRIMARY KEY (account_id, id),
    CONSTRAINT balanced CHECK (allowance + topup + held_allowance + held_topup
                               + spent + owed + granted + outside = 0)
) PARTITION BY HASH (account_id);
CREATE UNIQUE INDEX entries_once ON entries (account_id, key);
CREATE INDEX entries_by_reference ON entries (account_id, reference) WHERE reference IS NOT NULL;
CREATE INDEX entries_by_task ON entries (account_id, task_id, id) WHERE task_id IS NOT NULL;

-- The sums of an account's entries.
CREATE TABLE balances (
    account_id      uuid PRIMARY KEY,
    allowance       bigint NOT NULL DEFAULT 0 CHECK (allowance >= 0),
    topup           bigint NOT NULL DEFAULT 0 CHECK (topup >= 0),
    held_allowance  bigint NOT NULL DEFAULT 0 CHECK (held_allowance >= 0),
    held_topup      bigint NOT NULL DEFAULT 0 CHECK (held_topup >= 0),
    spent           bigint NOT NULL DEFAULT 0,
    owed            bigint NOT NULL DEFAULT 0 CHECK (owed <= 0),
    granted         bigint NOT NULL DEFAULT 0,
    outside         bigint NOT NULL DEFAULT 0,
    entries         bigint NOT NULL DEFAULT 0,
    allow_overflow  boolean NOT NULL DEFAULT true,
    -- Whether the event for an empty balance was sent. Reset when money arrives.
    told_depleted   boolean NOT NULL DEFAULT false,
    -- This month's allowance, and the tier and seats it was granted for.
    tier            text,
    seats           integer,
    period          integer NOT NULL DEFAULT 0,
    period_anchor   timestamptz,
    period_ends_at  timestamptz,
    allowance_total bigint NOT NULL DEFAULT 0,
    allowance_used  bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The hold of each run, open until the task ends. `allowance` and `topup` are the amounts that are
-- not spent yet, and after closing the amounts that were released.
CREATE TABLE holds (
    account_id     uuid NOT NULL,
    task_id        uuid NOT NULL,
    run            integer NOT NULL,
    open           boolean NOT NULL DEFAULT true,
    allowance      bigint NOT NULL CHECK (allowance >= 0),
    topup          bigint NOT NULL CHECK (topup >= 0),
    charged        bigint NOT NULL DEFAULT 0,
    -- The month of the allowance in this hold.
    period         integer NOT NULL,
    -- A subtask takes money from the hold of its parent task, call by call. `drawn` never exceeds
    -- the budget of the subtask.
    parent_task_id uuid,
    parent_run     integer,
    budget         bigint NOT NULL,
    drawn          bigint NOT NULL DEFAULT 0 CHECK (drawn <= budget),
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (account_id, task_id, run)
) PARTITION BY HASH (account_id);
CREATE INDEX holds_open ON holds (account_id) WHERE open;

-- Usage per day, for charts.
CREATE TABLE usage_days (
    account_id    uuid NOT NULL,
    day           date NOT NULL,
    agent         text NOT NULL,
    model         text NOT NULL,
    calls         bigint NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    spent         bigint NOT NULL,
    PRIMARY KEY (account_id, day, agent, model)
) WITH (fillfactor = 50);

-- The account's customer ID at the payment processor, from the first payment on.
CREATE TABLE customers (
    account_id  uuid PRIMARY KEY,
    customer_id text NOT NULL
);

DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('CREATE TABLE entries_%s PARTITION OF entries
            FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, part);
        EXECUTE format('CREATE TABLE holds_%s PARTITION OF holds
            FOR VALUES WITH (MODULUS 16, REMAINDER %s) WITH (fillfactor = 70)', part, part);
    END LOOP;
END
$$;

CREATE FUNCTION open_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO balances (account_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    RETURN NEW;
END
$$;
CREATE TRIGGER open_balance AFTER INSERT ON accounts
    FOR EACH ROW EXECUTE FUNCTION open_balance();

-- Forced row security also applies to the owner of the table.
ALTER TABLE accounts NO FORCE ROW LEVEL SECURITY;
INSERT INTO balances (account_id) SELECT id FROM accounts;
ALTER TABLE accounts FORCE ROW LEVEL SECURITY;

GRANT SELECT, INSERT ON entries TO rota_app;
GRANT SELECT, INSERT, UPDATE ON balances, holds, usage_days, customers TO rota_app;

DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY['entries', 'balances', 'holds', 'usage_days', 'customers'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (account_id = current_account_id())', tenant);
    END LOOP;
END
$$;
-- For the command that verifies the ledgers of all accounts.
CREATE POLICY relay ON balances FOR SELECT USING (is_relay());
