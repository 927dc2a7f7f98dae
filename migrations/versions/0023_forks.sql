-- model: the name of the model that the runs use, NULL for the agent's. forked_from, forked_run and
-- forked_step: the task and the run that a fork was made from, and the last step that it copied.
ALTER TABLE tasks
    ADD COLUMN model text,
    ADD COLUMN forked_from uuid,
    ADD COLUMN forked_run integer,
    ADD COLUMN forked_step integer;
