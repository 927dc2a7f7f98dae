-- By default a table is vacuumed after a fifth of its rows has changed. A partition of 60 million rows
-- would collect 12 million dead ones first. These settings do not block reads or writes of the tables.
DO $$
DECLARE
    part regclass;
    name text;
BEGIN
    -- Rows that are never changed: vacuum freezes them at once, so that the vacuum against wraparound,
    -- which reads everything that is not frozen, finds little to do.
    FOR part IN SELECT inhrelid::regclass FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
        WHERE inhparent IN ('events'::regclass, 'entries'::regclass, 'audit_entries'::regclass)
          AND c.relkind = 'r' LOOP
        EXECUTE format('ALTER TABLE %s SET (
            autovacuum_vacuum_insert_scale_factor = 0.01,
            autovacuum_vacuum_scale_factor = 0.01,
            autovacuum_analyze_scale_factor = 0.02,
            autovacuum_freeze_min_age = 0)', part);
    END LOOP;
    -- Rows that change for some minutes. A million transactions are five minutes of 1,000 tasks a second.
    FOR part IN SELECT inhrelid::regclass FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
        WHERE inhparent IN ('tasks'::regclass, 'steps'::regclass, 'holds'::regclass,
                            'webhook_deliveries'::regclass)
          AND c.relkind = 'r' LOOP
        EXECUTE format('ALTER TABLE %s SET (
            autovacuum_vacuum_insert_scale_factor = 0.01,
            autovacuum_vacuum_scale_factor = 0.01,
            autovacuum_analyze_scale_factor = 0.02,
            autovacuum_freeze_min_age = 1000000)', part);
    END LOOP;
    -- A row for each task or request, beside the partitions.
    FOREACH name IN ARRAY ARRAY['task_words', 'reviews', 'idempotency_keys'] LOOP
        EXECUTE format('ALTER TABLE %I SET (
            autovacuum_vacuum_insert_scale_factor = 0.01,
            autovacuum_vacuum_scale_factor = 0.01,
            autovacuum_analyze_scale_factor = 0.02,
            autovacuum_freeze_min_age = 1000000)', name);
    END LOOP;
    -- One row or a few for each account, changed all the time. Their indexes stay small only if dead
    -- rows go soon.
    FOREACH name IN ARRAY ARRAY['account_heads', 'task_counts', 'balances', 'usage_days',
                                'audit_heads', 'retention_turns'] LOOP
        EXECUTE format('ALTER TABLE %I SET (
            autovacuum_vacuum_scale_factor = 0.05,
            autovacuum_analyze_scale_factor = 0.05)', name);
    END LOOP;
END
$$;
