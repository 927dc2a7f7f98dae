-- The role of the service. It owns nothing, so row security applies to it.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rota_app') THEN
        CREATE ROLE rota_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
EXCEPTION
    -- Roles belong to the cluster, and another database can create the role at the same time.
    WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;
-- A superuser can use any role. Other users must be members of it.
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

-- The account whose rows a transaction can read. NULL if the setting is missing or empty.
CREATE FUNCTION current_account_id() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('rota.account_id', true), '')::uuid;
CREATE FUNCTION current_user_id() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('rota.user_id', true), '')::uuid;

-- Directories: they map a credential to its account before the account is known. The credential is
-- the key, so they can be sharded by it.

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

-- ID tokens that were used. Each creates one session.
CREATE TABLE used_id_tokens (
    token_hash bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX used_id_tokens_by_expiry ON used_id_tokens (expires_at);
-- The sweep needs UPDATE for SELECT … FOR UPDATE.
GRANT SELECT, INSERT, UPDATE, DELETE ON used_id_tokens TO rota_app;

-- The keys that sign session tokens. Only operator commands write here.
CREATE TABLE signing_keys (
    kid            text PRIMARY KEY,
    public_jwk     jsonb NOT NULL,
    sealed_private bytea NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    -- From this time on, tokens of this key are not accepted.
    retires_at     timestamptz
);
GRANT SELECT ON signing_keys TO rota_app;

-- Tables of accounts. A personal account has the UUID of its user, so rows of a user are found,
-- secured and sharded by the same key.

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

-- Members of company accounts. A personal account has only its user.
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
-- A user can read every account that the user belongs to, to select one.
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
