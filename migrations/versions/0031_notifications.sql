-- What a user wants to be told about an account, and how.
CREATE TABLE notification_settings (
    account_id      uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    user_id         uuid NOT NULL,
    -- Whether messages name agents, tasks and calls.
    content         text NOT NULL CHECK (content IN ('full', 'minimal')),
    mail_kinds      text[] NOT NULL,
    chat_kinds      text[] NOT NULL,
    chat_service    text,
    -- The URL is a secret: whoever has it can write into the channel.
    sealed_chat_url bytea,
    chat_url_shown  text,
    last_test_at    timestamptz,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (account_id, user_id),
    CHECK ((sealed_chat_url IS NULL) = (chat_url_shown IS NULL))
);
GRANT SELECT, INSERT, UPDATE, DELETE ON notification_settings TO rota_app;

-- Something happened that users of the account want to be told about. A worker turns it into items.
CREATE TABLE notices (
    account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id         bigint GENERATED ALWAYS AS IDENTITY,
    kind       text NOT NULL,
    -- The task, the webhook or the account.
    subject    uuid NOT NULL,
    -- The user who caused it in a session.
    caused_by  uuid,
    -- The only user to tell. NULL: all who want to be told.
    only_for   uuid,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (account_id, id)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON notices TO rota_app;

-- The messages of one kind to one user through one channel, which are sent one after the other.
CREATE TABLE notification_queues (
    account_id      uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    user_id         uuid NOT NULL,
    kind            text NOT NULL,
    channel         text NOT NULL,
    -- When a worker sends what waits, or when the lease of the worker that sends it ends. NULL:
    -- nothing waits.
    due_at          timestamptz,
    attempts        integer NOT NULL DEFAULT 0,
    first_failed_at timestamptz,
    last_sent_at    timestamptz,
    -- When the last message was given up.
    failed_at       timestamptz,
    error           text,
    PRIMARY KEY (account_id, user_id, kind, channel)
);
CREATE INDEX notification_queues_due ON notification_queues (due_at) WHERE due_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE, DELETE ON notification_queues TO rota_app;

-- What the next message of a queue is about: each task once, however often something happens to it.
CREATE TABLE notification_items (
    account_id uuid NOT NULL,
    user_id    uuid NOT NULL,
    kind       text NOT NULL,
    channel    text NOT NULL,
    subject    uuid NOT NULL,
    -- The newest notice about it.
    notice_id  bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, user_id, kind, channel, subject),
    FOREIGN KEY (account_id, user_id, kind, channel) REFERENCES notification_queues
        ON DELETE CASCADE
);
GRANT SELECT, INSERT, UPDATE, DELETE ON notification_items TO rota_app;

DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY[
        'notification_settings', 'notices', 'notification_queues', 'notification_items'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (account_id = current_account_id())', tenant);
    END LOOP;
END
$$;
-- For the worker, which finds what is due for all accounts, and for the rotation of the secret key.
CREATE POLICY relay ON notices FOR SELECT TO rota_relay USING (true);
CREATE POLICY relay ON notification_queues FOR SELECT TO rota_relay USING (true);
CREATE POLICY relay ON notification_settings TO rota_relay USING (true);

-- Stores that something happened, if a user to tell wants to know. NULL: nobody does.
CREATE FUNCTION add_notice(about text, subject uuid, caused_by uuid, only_for uuid) RETURNS boolean
LANGUAGE sql AS $$
    INSERT INTO notices (account_id, kind, subject, caused_by, only_for)
    SELECT current_account_id(), about, subject, caused_by, only_for
    WHERE EXISTS (
        SELECT FROM notification_settings s
        WHERE s.account_id = current_account_id()
          AND (only_for IS NULL OR s.user_id = only_for)
          AND (about = ANY (s.mail_kinds) OR about = ANY (s.chat_kinds))
    )
    RETURNING true
$$;
