-- PostgreSQL cannot create the index of a partitioned table concurrently, but those of its partitions.
DROP INDEX CONCURRENTLY IF EXISTS tasks_0_by_origin;
CREATE INDEX CONCURRENTLY tasks_0_by_origin ON tasks_0 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_1_by_origin;
CREATE INDEX CONCURRENTLY tasks_1_by_origin ON tasks_1 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_2_by_origin;
CREATE INDEX CONCURRENTLY tasks_2_by_origin ON tasks_2 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_3_by_origin;
CREATE INDEX CONCURRENTLY tasks_3_by_origin ON tasks_3 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_4_by_origin;
CREATE INDEX CONCURRENTLY tasks_4_by_origin ON tasks_4 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_5_by_origin;
CREATE INDEX CONCURRENTLY tasks_5_by_origin ON tasks_5 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_6_by_origin;
CREATE INDEX CONCURRENTLY tasks_6_by_origin ON tasks_6 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_7_by_origin;
CREATE INDEX CONCURRENTLY tasks_7_by_origin ON tasks_7 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_8_by_origin;
CREATE INDEX CONCURRENTLY tasks_8_by_origin ON tasks_8 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_9_by_origin;
CREATE INDEX CONCURRENTLY tasks_9_by_origin ON tasks_9 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_10_by_origin;
CREATE INDEX CONCURRENTLY tasks_10_by_origin ON tasks_10 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_11_by_origin;
CREATE INDEX CONCURRENTLY tasks_11_by_origin ON tasks_11 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_12_by_origin;
CREATE INDEX CONCURRENTLY tasks_12_by_origin ON tasks_12 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_13_by_origin;
CREATE INDEX CONCURRENTLY tasks_13_by_origin ON tasks_13 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_14_by_origin;
CREATE INDEX CONCURRENTLY tasks_14_by_origin ON tasks_14 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS tasks_15_by_origin;
CREATE INDEX CONCURRENTLY tasks_15_by_origin ON tasks_15 (account_id, forked_from)
    WHERE forked_from IS NOT NULL;
