-- The one row about the installation. A restored database has the row of an earlier moment, so a
-- process can compare it with the server that it runs on and with what Redis remembers.
CREATE TABLE installation (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- The server: its system identifier, and its timeline, which a recovery increases.
    cluster     text NOT NULL,
    timeline    integer NOT NULL,
    -- The number that the server gave to the database. A replica and a recovery keep it. A dump
    -- that is restored, or a copy on the same server, has another one.
    database    text NOT NULL,
    -- Workers increase it all the time.
    beat        bigint NOT NULL DEFAULT 0,
    beat_at     timestamptz NOT NULL DEFAULT now(),
    -- How often the database was restored, and the last time.
    restores    integer NOT NULL DEFAULT 0,
    restored_at timestamptz
) WITH (fillfactor = 50);
INSERT INTO installation (cluster, timeline, database)
SELECT system_identifier::text,
       ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer,
       (SELECT oid::text FROM pg_database WHERE datname = current_database())
FROM pg_control_system();
GRANT SELECT ON installation TO rota_app;
GRANT UPDATE ON installation TO rota_relay;

-- How many numbers of events a restore has skipped, so that none is used twice.
ALTER TABLE account_heads ADD COLUMN skipped bigint NOT NULL DEFAULT 0;
