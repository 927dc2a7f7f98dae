-- The name of the user who created the key, at that time. Users can read only their own name.
ALTER TABLE api_keys ADD COLUMN created_by_name text;
ALTER TABLE api_keys NO FORCE ROW LEVEL SECURITY;
ALTER TABLE users NO FORCE ROW LEVEL SECURITY;
UPDATE api_keys k SET created_by_name = coalesce(u.name, u.email) FROM users u
WHERE u.id = k.user_id;
ALTER TABLE users FORCE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
