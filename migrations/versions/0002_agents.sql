-- The catalog belongs to the operator and is the same for every account, so these tables have no
-- row security. Only `rota admin agents sync` writes here, as the owner of the tables.
-- The catalog has hundreds of rows, so counting and sorting all of them is cheap.

CREATE TABLE agent_versions (
    -- Byte order, so that lists have the same order with every locale of the database.
    name          text COLLATE "C" NOT NULL,
    version       integer NOT NULL CHECK (version > 0),
    display_name  text NOT NULL,
    description   text NOT NULL,
    department    text COLLATE "C" NOT NULL,
    tier          smallint NOT NULL CHECK (tier BETWEEN 1 AND 3),
    tags          text[] NOT NULL,
    aliases       text[] NOT NULL,
    premium       boolean NOT NULL,
    required_tier text NOT NULL,
    model         text NOT NULL,
    tools         text[] NOT NULL,
    approval      jsonb NOT NULL,
    budget_cents  integer NOT NULL CHECK (budget_cents > 0),
    max_steps     integer NOT NULL CHECK (max_steps > 0),
    instructions  text NOT NULL,
    content_hash  bytea NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name, version)
);

CREATE TABLE agents (
    name       text COLLATE "C" PRIMARY KEY,
    -- The version for new tasks. Running tasks keep the version they started with.
    version    integer NOT NULL,
    search     tsvector NOT NULL,
    -- Set when the file is removed. The row stays for its versions, and the agent is not listed.
    retired_at timestamptz,
    FOREIGN KEY (name, version) REFERENCES agent_versions (name, version)
);
CREATE INDEX agents_by_search ON agents USING gin (search);

CREATE VIEW current_agents AS
    SELECT v.*, a.search
    FROM agents a JOIN agent_versions v ON v.name = a.name AND v.version = a.version
    WHERE a.retired_at IS NULL;

GRANT SELECT ON agents, agent_versions, current_agents TO rota_app;

-- Search. Agents and queries are split into plain words in the same way. Otherwise PostgreSQL's
-- parser would find hosts, paths and tags in the text. It also removes the operators of its query
-- language.
CREATE FUNCTION agent_words(given text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(given, '[^a-zA-Z0-9\u0080-\U0010ffff]+', ' ', 'g');

-- Each word as it is written, for prefixes ("writi" finds "writing"), and its English stem, for
-- other forms ("writes" finds "writing"). Stems alone would break prefixes, because "writi" is not
-- a prefix of the stem "write".
CREATE FUNCTION agent_lexemes(given text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_tsvector('pg_catalog.simple', agent_words(given))
        || to_tsvector('pg_catalog.english', agent_words(given));

CREATE FUNCTION agent_document(name text, display_name text, tags text[], description text)
    RETURNS tsvector
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN setweight(agent_lexemes(name || ' ' || display_name), 'A')
        || setweight(agent_lexemes(array_to_string(tags, ' ')), 'B')
        || setweight(agent_lexemes(description), 'C');

-- Every word must match: as a word, as a prefix or in another form. Words like "the" and "for"
-- count only if the query has no other words. The result is NULL, which finds nothing, if the query
-- has no word at all. A stem that equals its word is left out: ranking keeps one of two equal
-- words, and it must keep the prefix.
CREATE FUNCTION agent_search(given text) RETURNS tsquery
    LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    WITH words AS (
        SELECT lexeme, ts_lexize('pg_catalog.english_stem', lexeme) AS stems
        FROM unnest(to_tsvector('pg_catalog.simple', agent_words(given)))
    )
    SELECT string_agg(
        format('(''%s'':*%s)', lexeme, (SELECT string_agg(format(' | ''%s''', stem), '')
                                        FROM unnest(stems) AS stem
                                        WHERE stem <> lexeme)),
        ' & ')::tsquery
    FROM words
    WHERE stems <> '{}' OR NOT EXISTS (SELECT FROM words WHERE stems <> '{}');
END;
