-- Who did what to which resource. The hash of an entry covers the hash of the one before it.
CREATE TABLE audit_entries (
    account_id uuid NOT NULL,
    sequence   bigint NOT NULL,
    at         timestamptz NOT NULL,
    actor      text NOT NULL,
    user_id    uuid,
    -- The session, the API key, or the task of an agent.
    via        text,
    action     text NOT NULL,
    resource   text NOT NULL,
    -- A hash of the salt and of what is private. Erasure deletes both, and the hash still fits.
    commitment bytea NOT NULL,
    salt       bytea,
    -- Not jsonb: the commitment is to the exact text.
    private    text,
    hash       bytea NOT NULL,
    PRIMARY KEY (account_id, sequence)
) PARTITION BY HASH (account_id);
CREATE INDEX audit_entries_by_resource ON audit_entries (account_id, resource, sequence);

DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('CREATE TABLE audit_entries_%s PARTITION OF audit_entries
            FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, part);
    END LOOP;
END
$$;

-- The newest entry of each account. Without it, nobody would miss an entry at the end.
CREATE TABLE audit_heads (
    account_id uuid PRIMARY KEY,
    sequence   bigint NOT NULL,
    hash       bytea NOT NULL
) WITH (fillfactor = 50);

DO $$
DECLARE
    tenant text;
BEGIN
    FOREACH tenant IN ARRAY ARRAY['audit_entries', 'audit_heads'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', tenant);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', tenant);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (account_id = current_account_id())', tenant);
        EXECUTE format('CREATE POLICY relay ON %I FOR SELECT TO rota_relay USING (true)', tenant);
    END LOOP;
END
$$;

-- The service can read the trail, and append with the function below. It cannot change anything.
GRANT SELECT ON audit_entries, audit_heads TO rota_app;

-- Appends entries, a list of JSON objects, to the chain of the transaction's account. Other
-- transactions that append to it wait until this one ends, so call it last.
CREATE FUNCTION append_audit(new_entries bytea) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    account  uuid := current_account_id();
    place    bigint;
    previous bytea;
    entry    record;
BEGIN
    IF account IS NULL THEN
        RAISE EXCEPTION 'an audit entry needs an account';
    END IF;
    SELECT h.sequence, h.hash INTO place, previous FROM audit_heads h
    WHERE h.account_id = account FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO audit_heads VALUES (account, 0, decode(repeat('00', 32), 'hex'))
        ON CONFLICT DO NOTHING;
        SELECT h.sequence, h.hash INTO place, previous FROM audit_heads h
        WHERE h.account_id = account FOR UPDATE;
    END IF;
    FOR entry IN SELECT * FROM json_to_recordset(convert_from(new_entries, 'UTF8')::json) AS e (
        at timestamptz, actor text, user_id uuid, via text, action text, resource text,
        commitment bytea, salt bytea, private text, digest bytea)
    LOOP
        place := place + 1;
        previous := sha256(previous || int8send(place) || entry.digest);
        INSERT INTO audit_entries VALUES (
            account, place, entry.at, entry.actor, entry.user_id, entry.via, entry.action,
            entry.resource, entry.commitment, entry.salt, entry.private, previous);
    END LOOP;
    UPDATE audit_heads h SET sequence = place, hash = previous WHERE h.account_id = account;
END
$$;
REVOKE ALL ON FUNCTION append_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION append_audit TO rota_app;
