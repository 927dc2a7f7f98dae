-- A summary is a model call that replaces the oldest steps of a long conversation. NOT VALID: every
-- existing step has one of the old kinds, so the table does not have to be read.
ALTER TABLE steps DROP CONSTRAINT steps_kind_check;
ALTER TABLE steps ADD CONSTRAINT steps_kind_check CHECK (kind IN ('model', 'summary', 'tool'))
    NOT VALID;
