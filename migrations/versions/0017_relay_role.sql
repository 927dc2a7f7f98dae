-- Background work for all accounts, such as the relay, uses a role of its own. Before, it used a
-- setting that every statement could make.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rota_relay') THEN
        CREATE ROLE rota_relay NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
EXCEPTION
    -- Roles belong to the cluster, and another database can create the role at the same time.
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;
DO $$
DECLARE
    -- From PostgreSQL 16 on, a member can lack the right to use SET ROLE.
    may_set text := CASE WHEN current_setting('server_version_num')::int >= 160000
                         THEN 'SET' ELSE 'MEMBER' END;
BEGIN
    -- The relay has the rights of the application, and its own policies on top.
    IF NOT pg_has_role('rota_relay', 'rota_app', 'USAGE') THEN
        GRANT rota_app TO rota_relay;
    END IF;
    -- A superuser can use any role. Other users must be members of it.
    IF NOT pg_has_role(current_user, 'rota_relay', may_set) THEN
        EXECUTE format('GRANT rota_relay TO %I', current_user);
    END IF;
END
$$;

-- A policy of one role costs the others nothing.
DO $$
DECLARE
    policy record;
BEGIN
    FOR policy IN
        SELECT schemaname, tablename, policyname FROM pg_policies
        WHERE schemaname = 'public' AND qual = 'is_relay()'
    LOOP
        EXECUTE format('ALTER POLICY %I ON %I.%I TO rota_relay USING (true)',
                       policy.policyname, policy.schemaname, policy.tablename);
    END LOOP;
END
$$;
-- For policies that combine it with other conditions.
CREATE OR REPLACE FUNCTION is_relay() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN current_user = 'rota_relay';
