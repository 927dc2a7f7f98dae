-- The API key that chose the URL. NULL: a session, or a webhook that is older than this column.
ALTER TABLE webhooks ADD COLUMN saved_with uuid;
-- NOT VALID: every existing webhook has one of the old reasons. The new constraint accepts them too.
-- squawk-ignore ban-drop-constraint
ALTER TABLE webhooks DROP CONSTRAINT webhooks_disabled_reason_check;
ALTER TABLE webhooks ADD CONSTRAINT webhooks_disabled_reason_check CHECK (disabled_reason IN
    ('paused', 'failing', 'gone', 'member_removed', 'key_ended')) NOT VALID;

-- A request that erases an account can delete only the identity of its own user. Everybody still
-- finds and adds identities: that is how a sign-in locates its user.
ALTER TABLE identities ENABLE ROW LEVEL SECURITY;
CREATE POLICY everybody_reads ON identities FOR SELECT USING (true);
CREATE POLICY everybody_adds ON identities FOR INSERT WITH CHECK (true);
CREATE POLICY own_goes ON identities FOR DELETE USING (user_id = current_user_id());
