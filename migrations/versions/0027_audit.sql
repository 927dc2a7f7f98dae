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

-- Appends entries to the chain of the transaction's account. The arrays have one item for each. Other
-- transactions that append to the chain wait until this one ends, so call it last.
CREATE FUNCTION append_audit(
    account uuid, times timestamptz[], actors text[], users uuid[], vias text[], actions text[],
    resources text[], commitments bytea[], salts bytea[], privates text[], digests bytea[])
    RETURNS void LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    place  bigint;
    linked bytea;
    total  integer := cardinality(digests);
BEGIN
    IF account IS DISTINCT FROM current_account_id() THEN
        RAISE EXCEPTION 'an audit entry needs a transaction of its account';
    END IF;
    UPDATE audit_heads h
    SET sequence = h.sequence + 1,
        hash = sha256(h.hash || int8send(h.sequence + 1) || digests[1])
    WHERE h.account_id = account RETURNING h.sequence, h.hash INTO place, linked;
    IF NOT FOUND THEN
        -- Another transaction may add the first entry at the same time.
        INSERT INTO audit_heads AS h
        VALUES (account, 1, sha256(decode(repeat('00', 32), 'hex') || int8send(1) || digests[1]))
        ON CONFLICT (account_id) DO UPDATE
        SET sequence = h.sequence + 1,
            hash = sha256(h.hash || int8send(h.sequence + 1) || digests[1])
        RETURNING h.sequence, h.hash INTO place, linked;
    END IF;
    FOR i IN 1..total LOOP
        IF i > 1 THEN
            place := place + 1;
            linked := sha256(linked || int8send(place) || digests[i]);
        END IF;
        INSERT INTO audit_entries VALUES (
            account, place, times[i], actors[i], users[i], vias[i], actions[i], resources[i],
            commitments[i], salts[i], privates[i], linked);
    END LOOP;
    -- One entry is the usual case. For several, each update of the head would find all before it.
    IF total > 1 THEN
        UPDATE audit_heads h SET sequence = place, hash = linked WHERE h.account_id = account;
    END IF;
END
$$;
REVOKE ALL ON FUNCTION append_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION append_audit TO rota_app;
