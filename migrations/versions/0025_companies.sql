-- Whether a member can approve. Owners and admins always can. Members from before this column could,
-- and keep the right. Members who join later get it from an owner or admin.
ALTER TABLE members ADD COLUMN approver boolean NOT NULL DEFAULT true;
ALTER TABLE members ALTER COLUMN approver SET DEFAULT false;

-- The user who created the company over the API. NULL: an operator, or a personal account.
ALTER TABLE accounts ADD COLUMN created_by uuid;
-- How many companies the user has created, also those that the user has left.
ALTER TABLE users ADD COLUMN companies_created integer NOT NULL DEFAULT 0;

-- A company's transaction can read the names and addresses of its members.
CREATE POLICY members ON users FOR SELECT USING (
    EXISTS (SELECT FROM members m
            WHERE m.account_id = current_account_id() AND m.user_id = users.id)
);

-- The address that the issuer had verified at the time of the sign-in, with its ASCII letters in
-- lower case. NULL: none. For the user, the last one.
ALTER TABLE sessions ADD COLUMN verified_email text;
ALTER TABLE users ADD COLUMN verified_email text;

-- Open invitations. The link contains the token, and only its hash is stored. The address has its
-- ASCII letters in lower case.
CREATE TABLE invitations (
    account_id uuid NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    id         uuid NOT NULL,
    token_hash bytea NOT NULL,
    email      text NOT NULL,
    role       text NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    approver   boolean NOT NULL,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    UNIQUE (account_id, token_hash)
);
-- One invitation for each address.
CREATE UNIQUE INDEX invitations_by_email ON invitations (account_id, email);
GRANT SELECT, INSERT, DELETE ON invitations TO rota_app;
ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;
ALTER TABLE invitations FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON invitations USING (account_id = current_account_id());

-- Stops a transaction of a user who does not belong to the account, or who lacks a right there.
-- NULL: no right is needed.
CREATE FUNCTION require_member(needed text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    member members;
BEGIN
    SELECT * INTO member FROM members
    WHERE account_id = current_account_id() AND user_id = current_user_id();
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the user is not a member of the account' USING ERRCODE = 'RT403';
    END IF;
    IF needed IS NOT NULL AND member.role = 'member'
       AND NOT (needed = 'approve' AND member.approver) THEN
        RAISE EXCEPTION 'the member lacks the right: %', needed USING ERRCODE = 'RT405';
    END IF;
END
$$;
