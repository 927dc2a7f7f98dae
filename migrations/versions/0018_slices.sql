-- The number of the slice that may change the task's run. Every slice raises it first, and so do a
-- cancellation and a retry. A worker with an older number stops.
ALTER TABLE tasks ADD COLUMN fence bigint NOT NULL DEFAULT 0;

-- Failed attempts of a call. A model call has a row in the state `planned` once it has failed.
ALTER TABLE steps ADD COLUMN attempts integer NOT NULL DEFAULT 0;
