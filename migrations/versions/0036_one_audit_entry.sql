-- Appends one entry, as `append_audit` does for several. Most transactions have one, and arrays of
-- one item take longer to read than values.
--
-- It is a procedure because CALL takes less time than a query. Setting a search path for each call
-- would take longer too, so none is set. Instead, everything inside names its schema, types as well:
-- whoever calls the procedure could have a type with the same name in a schema of their own.
CREATE PROCEDURE append_audit_entry(
    account uuid, moment timestamptz, actor text, user_id uuid, via text, action text,
    resource text, commitment bytea, salt bytea, private text, digest bytea)
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    place  pg_catalog.int8;
    linked pg_catalog.bytea;
BEGIN
    IF (account OPERATOR(pg_catalog.=) public.current_account_id()) IS NOT TRUE THEN
        RAISE EXCEPTION 'an audit entry needs a transaction of its account';
    END IF;
    UPDATE public.audit_heads h
    SET sequence = h.sequence OPERATOR(pg_catalog.+) 1,
        hash = pg_catalog.sha256(
            h.hash
            OPERATOR(pg_catalog.||) pg_catalog.int8send(h.sequence OPERATOR(pg_catalog.+) 1)
            OPERATOR(pg_catalog.||) digest)
    WHERE h.account_id OPERATOR(pg_catalog.=) account
    RETURNING h.sequence, h.hash INTO place, linked;
    IF place IS NULL THEN
        -- The first entry of the account.
        PERFORM public.append_audit(
            account, ARRAY[moment], ARRAY[actor], ARRAY[user_id], ARRAY[via], ARRAY[action],
            ARRAY[resource], ARRAY[commitment], ARRAY[salt], ARRAY[private], ARRAY[digest]);
        RETURN;
    END IF;
    INSERT INTO public.audit_entries VALUES (
        account, place, moment, actor, user_id, via, action, resource, commitment, salt, private,
        linked);
END
$$;
-- contract: the procedure is new, so no release uses it yet.
REVOKE ALL ON PROCEDURE append_audit_entry FROM PUBLIC;
GRANT EXECUTE ON PROCEDURE append_audit_entry TO rota_app;
