-- PostgreSQL cannot create the index of a partitioned table concurrently, but those of its partitions. They
-- have the names that it would give them, also when a seed creates the indexes again.
DROP INDEX CONCURRENTLY IF EXISTS tasks_0_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_0_account_id_forked_from_idx ON tasks_0 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_1_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_1_account_id_forked_from_idx ON tasks_1 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_2_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_2_account_id_forked_from_idx ON tasks_2 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_3_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_3_account_id_forked_from_idx ON tasks_3 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_4_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_4_account_id_forked_from_idx ON tasks_4 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_5_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_5_account_id_forked_from_idx ON tasks_5 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_6_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_6_account_id_forked_from_idx ON tasks_6 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_7_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_7_account_id_forked_from_idx ON tasks_7 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_8_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_8_account_id_forked_from_idx ON tasks_8 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_9_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_9_account_id_forked_from_idx ON tasks_9 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_10_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_10_account_id_forked_from_idx ON tasks_10 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_11_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_11_account_id_forked_from_idx ON tasks_11 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_12_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_12_account_id_forked_from_idx ON tasks_12 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_13_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_13_account_id_forked_from_idx ON tasks_13 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_14_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_14_account_id_forked_from_idx ON tasks_14 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_15_account_id_forked_from_idx;
CREATE INDEX CONCURRENTLY tasks_15_account_id_forked_from_idx ON tasks_15 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
