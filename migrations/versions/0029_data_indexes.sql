DROP INDEX CONCURRENTLY IF EXISTS identities_by_user;
-- Erasure deletes the identity of a user.
CREATE INDEX CONCURRENTLY identities_by_user ON identities (user_id);
