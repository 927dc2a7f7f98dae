-- What an account pays for by the month, as the payment processor last said: one
-- plan, which gives the account its tier, and one personal add-on, which does not.
-- A row stays when its subscription has ended, so that who had one is known.
CREATE TABLE subscriptions (
    account_id           uuid NOT NULL,
    product              text NOT NULL CHECK (product IN ('plan', 'connect_pass')),
    processor_id         text NOT NULL,
    status               text NOT NULL CHECK (status IN
        ('ACTIVE', 'CANCELLED', 'PAST_DUE', 'TRIALING')),
    -- What is paid for; only a plan has a tier.
    tier                 text,
    seats                integer NOT NULL CHECK (seats > 0),
    -- Whether it gives what it is for: not when it has ended, or was not paid for too long.
    entitled             boolean NOT NULL,
    period_start         timestamptz NOT NULL,
    period_end           timestamptz NOT NULL,
    cancel_at_period_end boolean NOT NULL,
    -- The lower plan that follows when the period is over.
    downgrade_target     text,
    downgrade_seats      integer CHECK (downgrade_seats > 0),
    -- The start of the first period that was not paid.
    unpaid_since         timestamptz,
    -- The end of its trial, if it began with one.
    trial_end            timestamptz,
    -- Subscriptions that this one has taken the place of. What is told of them no longer counts.
    replaced             text[] NOT NULL DEFAULT '{}',
    -- When it is to be looked at although nobody told anything.
    due_at               timestamptz,
    updated_at           timestamptz NOT NULL,
    PRIMARY KEY (account_id, product),
    CHECK ((product = 'plan') = (tier IS NOT NULL)),
    CHECK ((downgrade_target IS NULL) = (downgrade_seats IS NULL))
);
-- For the sweep that looks through all accounts.
CREATE INDEX subscriptions_due ON subscriptions (due_at) WHERE due_at IS NOT NULL;

GRANT SELECT, INSERT, UPDATE ON subscriptions TO rota_app;

ALTER TABLE subscriptions ENABLE ROW LEVEL SECURITY;
ALTER TABLE subscriptions FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON subscriptions USING (account_id = current_account_id());
CREATE POLICY relay ON subscriptions FOR SELECT USING (is_relay());
