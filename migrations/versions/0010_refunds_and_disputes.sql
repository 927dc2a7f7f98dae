-- NOT VALID: every existing entry has one of the old kinds, so the table does not have to be read.
ALTER TABLE entries DROP CONSTRAINT entries_kind_check;
ALTER TABLE entries ADD CONSTRAINT entries_kind_check CHECK (kind IN
    ('allowance', 'top_up', 'hold', 'charge', 'release', 'expiry', 'refund', 'refund_reversal',
     'dispute', 'dispute_reversal')) NOT VALID;
