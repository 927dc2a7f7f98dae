-- NOT VALID: every existing webhook has one of the old reasons. The new constraint accepts them too.
-- squawk-ignore ban-drop-constraint
ALTER TABLE webhooks DROP CONSTRAINT webhooks_disabled_reason_check;
ALTER TABLE webhooks ADD CONSTRAINT webhooks_disabled_reason_check CHECK (disabled_reason IN
    ('paused', 'failing', 'gone', 'member_removed', 'key_ended', 'restored')) NOT VALID;
