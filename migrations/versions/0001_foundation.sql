-- The role that the service works as. It owns nothing, so row security binds it.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rota_app') THEN
        CREATE ROLE rota_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
EXCEPTION
    -- Roles belong to the cluster: another database may be migrated at this moment.
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;
-- A superuser may take any role; anyone else has to be made a member.
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'rota_app',
                       CASE WHEN current_setting('server_version_num')::int >= 160000
                            THEN 'SET' ELSE 'MEMBER' END) THEN
        EXECUTE format('GRANT rota_app TO %I', current_user);
    END IF;
END
$$;
GRANT USAGE ON SCHEMA public TO rota_app;

-- Whose data the transaction may see. No setting, or an empty one, is nobody.
CREATE FUNCTION current_account_id() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('rota.account_id', true), '')::uuid;
CREATE FUNCTION current_user_id() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('rota.user_id', true), '')::uuid;

-- Directories: they find an account from what a stranger holds, and tell nothing
-- else. They are keyed by what is held, so they shard by that key.

CREATE TABLE identities (
    issuer  text NOT NULL,
    subject text NOT NULL,
    user_id uuid NOT NULL,
    PRIMARY KEY (issuer, subject)
);
GRANT SELECT, INSERT ON identities TO rota_app;

CREATE TABLE api_key_hashes (
    secret_hash bytea PRIMARY KEY,
    account_id  uuid NOT NULL,
    user_id     uuid NOT NULL,
    key_id      uuid NOT NULL
);
GRANT SELECT, INSERT, DELETE ON api_key_hashes TO rota_app;

-- ID tokens that were taken already: each is good for one session.
CREATE TABLE used_id_tokens (
    token_hash bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX used_id_tokens_by_expiry ON used_id_tokens (expires_at);
-- UPDATE is for SELECT … FOR UPDATE, which the sweep uses.
GRANT SELECT, INSERT, UPDATE, DELETE ON used_id_tokens TO rota_app;

-- Our own token keys. Only the operator's commands write here.
CREATE TABLE signing_keys (
    kid            text PRIMARY KEY,
    public_jwk     jsonb NOT NULL,
    sealed_private bytea NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    -- From this moment on a token of this key is a retired legacy token.
    retires_at     timestamptz
);
GRANT SELECT ON signing_keys TO rota_app;

-- Tenants' tables. A user's personal account has the user's own UUID, so what
-- belongs to a user is found, secured and sharded by the same key.

CREATE TABLE users (
    id         uuid PRIMARY KEY,
    email      text,
    name       text,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE accounts (
    id            uuid PRIMARY KEY,
    kind          text NOT NULL CHECK (kind IN ('personal', 'company')),
    name          text NOT NULL,
    tier          text NOT NULL DEFAULT 'basic',
    seats         integer CHECK (seats > 0),
    trial_ends_at timestamptz,
    created_at    timestamptz NOT NULL DEFAULT now()
);

-- Members of company accounts. A personal account has its user and nobody else.
CREATE TABLE members (
    account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    user_id    uuid NOT NULL,
    role       text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account_id, user_id)
);
CREATE INDEX members_by_user ON members (user_id, account_id);

CREATE TABLE sessions (
    user_id      uuid NOT NULL,
    id           uuid NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    refreshed_at timestamptz NOT NULL DEFAULT now(),
    revoked_at   timestamptz,
    PRIMARY KEY (user_id, id)
);

CREATE TABLE api_keys (
    account_id   uuid NOT NULL,
    id           uuid NOT NULL,
    user_id      uuid NOT NULL,
    name         text NOT NULL,
    prefix       text NOT NULL,
    secret_hash  bytea NOT NULL,
    scopes       text[] NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    expires_at   timestamptz,
    PRIMARY KEY (account_id, id)
);

GRANT SELECT, INSERT, UPDATE ON users, accounts, sessions TO rota_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON members, api_keys TO rota_app;

ALTER TABLE users ENABLE ROW LEVEL SECURITY;
ALTER TABLE users FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON users USING (id = current_user_id());

ALTER TABLE members ENABLE ROW LEVEL SECURITY;
ALTER TABLE members FORCE ROW LEVEL SECURITY;
CREATE POLICY of_account ON members USING (account_id = current_account_id());
CREATE POLICY of_user ON members FOR SELECT USING (user_id = current_user_id());

ALTER TABLE accounts ENABLE ROW LEVEL SECURITY;
ALTER TABLE accounts FORCE ROW LEVEL SECURITY;
CREATE POLICY selected ON accounts USING (id = current_account_id());
-- A user sees every account that the user belongs to, to choose among them.
CREATE POLICY joined ON accounts FOR SELECT USING (
    id = current_user_id()
    OR id IN (SELECT account_id FROM members WHERE user_id = current_user_id())
);

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON sessions USING (user_id = current_user_id());

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON api_keys USING (account_id = current_account_id());
