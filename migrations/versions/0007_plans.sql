-- The subscriptions of an account, as the payment processor last reported them: one plan, which
-- sets the tier of the account, and one personal add-on. A row stays after its subscription has
-- ended, as a record that the account had one.
CREATE TABLE subscriptions (
    account_id           uuid NOT NULL,
    product              text NOT NULL CHECK (product IN ('plan', 'connect_pass')),
    processor_id         text NOT NULL,
    status               text NOT NULL CHECK (status IN
        ('ACTIVE', 'CANCELLED', 'PAST_DUE', 'TRIALING')),
    -- The product. Only a plan has a tier.
    tier                 text,
    seats                integer NOT NULL CHECK (seats > 0),
    -- Whether it is in effect. False after it has ended or was unpaid for too long.
    entitled             boolean NOT NULL,
    period_start         timestamptz NOT NULL,
    period_end           timestamptz NOT NULL,
    cancel_at_period_end boolean NOT NULL,
    -- The lower plan that starts after this period.
    downgrade_target     text,
    downgrade_seats      integer CHECK (downgrade_seats > 0),
    -- The start of the first unpaid period.
    unpaid_since         timestamptz,
    -- The end of its trial, if it has one.
    trial_end            timestamptz,
    -- Earlier subscriptions that this one replaced. Messages about them are ignored.
    replaced             text[] NOT NULL DEFAULT '{}',
    -- When to query the processor next, even without a message from it.
    due_at               timestamptz,
    updated_at           timestamptz NOT NULL,
    PRIMARY KEY (account_id, product),
    CHECK ((product = 'plan') = (tier IS NOT NULL)),
    CHECK ((downgrade_target IS NULL) = (downgrade_seats IS NULL))
);
-- For the sweep over all accounts.
CREATE INDEX subscriptions_due ON subscriptions (due_at) WHERE due_at IS NOT NULL;

GRANT SELECT, INSERT, UPDATE ON subscriptions TO rota_app;

ALTER TABLE subscriptions ENABLE ROW LEVEL SECURITY;
ALTER TABLE subscriptions FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON subscriptions USING (account_id = current_account_id());
CREATE POLICY relay ON subscriptions FOR SELECT USING (is_relay());
