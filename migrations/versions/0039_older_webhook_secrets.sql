-- The secrets of a webhook before the old one, the newest first, and until when each of them signs.
ALTER TABLE webhooks ADD COLUMN sealed_older_secrets bytea[] NOT NULL DEFAULT '{}',
    ADD COLUMN older_secrets_until timestamptz[] NOT NULL DEFAULT '{}';
