-- Retention looks for the forks of a task. The indexes of the partitions exist, so this reads no rows.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX tasks_by_origin ON ONLY tasks (account_id, forked_from) WHERE forked_from IS NOT NULL;
DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format('ALTER INDEX tasks_by_origin ATTACH PARTITION tasks_%s_account_id_forked_from_idx', part);
    END LOOP;
END
$$;
