DROP INDEX CONCURRENTLY IF EXISTS outbox_queued;
-- The runs of an account that wait for a slot, oldest task first.
CREATE INDEX CONCURRENTLY outbox_queued ON outbox (account_id, task_id) WHERE kind = 'run.queued';
