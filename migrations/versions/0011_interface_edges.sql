-- What a user sees in the list of sessions: the program and the address of the sign-in.
ALTER TABLE sessions
    ADD COLUMN device       text,
    ADD COLUMN address      text,
    ADD COLUMN last_seen_at timestamptz;

-- A stored key now begins with its user, so these responses are never read again. Some of them
-- contain the secret of an API key.
ALTER TABLE idempotency_keys NO FORCE ROW LEVEL SECURITY;
DELETE FROM idempotency_keys;
ALTER TABLE idempotency_keys FORCE ROW LEVEL SECURITY;

-- The words of each task's name, description and input, for the filter `q`. They have a table of
-- their own because most updates of a task change only its status: an index on `tasks` would be
-- written again with every one of them, this table only when a text changes.
CREATE TABLE task_words (
    account_id uuid NOT NULL,
    task_id    uuid NOT NULL,
    words      tsvector NOT NULL,
    PRIMARY KEY (account_id, task_id)
);
-- Without the list of pending entries: the write that fills the list would wait until all of it is
-- in the index, and every search would read the list.
CREATE INDEX task_words_by_word ON task_words USING gin (words) WITH (fastupdate = off);

-- Begins every word of an account in the index. A search then reads the entries of its own account,
-- however many tasks of other accounts have the same word.
CREATE FUNCTION word_prefix(account_id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN right(account_id::text, 6) || '.';

-- Words as they are written, without the rules of one language.
CREATE FUNCTION words_of(account_id uuid, name text, description text, input text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN array_to_tsvector(ARRAY(
        SELECT word_prefix(account_id) || w.lexeme
        FROM unnest(to_tsvector('simple', concat_ws(' ', name, description, input))) AS w
    ));

CREATE FUNCTION write_task_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO task_words (account_id, task_id, words)
    VALUES (NEW.account_id, NEW.id,
            words_of(NEW.account_id, NEW.name, NEW.description, NEW.input))
    ON CONFLICT (account_id, task_id) DO UPDATE SET words = excluded.words;
    RETURN NULL;
END
$$;

ALTER TABLE tasks NO FORCE ROW LEVEL SECURITY;
INSERT INTO task_words (account_id, task_id, words)
    SELECT account_id, id, words_of(account_id, name, description, input) FROM tasks;
ALTER TABLE tasks FORCE ROW LEVEL SECURITY;

CREATE TRIGGER write_words AFTER INSERT ON tasks
    FOR EACH ROW EXECUTE FUNCTION write_task_words();
CREATE TRIGGER rewrite_words AFTER UPDATE OF name, description, input ON tasks
    FOR EACH ROW
    WHEN (OLD.name IS DISTINCT FROM NEW.name OR OLD.description IS DISTINCT FROM NEW.description
          OR OLD.input IS DISTINCT FROM NEW.input)
    EXECUTE FUNCTION write_task_words();

GRANT SELECT, INSERT, UPDATE ON task_words TO rota_app;
ALTER TABLE task_words ENABLE ROW LEVEL SECURITY;
ALTER TABLE task_words FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON task_words USING (account_id = current_account_id());

-- The tasks of the current account that contain every word of `q`, or a word that begins with it.
-- Row security would keep PostgreSQL from using the index, because a text match could reveal the
-- rows that it compares. So this function runs as the owner of the table, whose policy below has no
-- condition, and checks the account itself.
CREATE POLICY search ON task_words FOR SELECT TO CURRENT_USER USING (true);
CREATE FUNCTION find_task_ids(q text) RETURNS SETOF uuid
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 100
    AS $$
        SELECT task_id FROM task_words
        WHERE words @@ (
            SELECT string_agg(
                '''' || word_prefix(current_account_id())
                    || replace(replace(lexeme, '\', '\\'), '''', '''''') || ''':*',
                ' & ')::tsquery
            FROM unnest(to_tsvector('simple', q))
        )
        -- Not as an index condition: the words already begin with the account.
        AND (account_id = current_account_id()) IS TRUE
    $$;
REVOKE EXECUTE ON FUNCTION find_task_ids(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_task_ids(text) TO rota_app;

-- For the list of what waits for a person, in the order in which it began to wait.
CREATE INDEX reviews_waiting ON reviews (account_id, requested_at, task_id)
    WHERE state = 'pending';
