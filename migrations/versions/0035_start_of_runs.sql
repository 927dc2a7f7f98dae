-- The last run that started from the start. A retry from failure keeps steps of this run and later
-- ones. NULL: the task is older than this column.
ALTER TABLE tasks ADD COLUMN start_run integer;
