-- What the agent is for.
ALTER TABLE agent_versions ADD COLUMN use_for text[] NOT NULL DEFAULT '{}';

-- The words of each agent that is not retired. They replace the vector in agents.search: reading
-- them by word is much faster than ranking vectors. The column and its functions stay for processes
-- of the last release.
CREATE TABLE agent_terms (
    -- A word or an English stem. Byte order, so that the index finds prefixes.
    term     text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL REFERENCES agents ON DELETE CASCADE,
    -- How much the term says about the agent.
    strength real NOT NULL,
    PRIMARY KEY (term, name) INCLUDE (strength)
);
CREATE INDEX agent_terms_by_name ON agent_terms (name);

ALTER TABLE agents ALTER COLUMN search SET DEFAULT '';

CREATE OR REPLACE VIEW current_agents AS
    SELECT v.name, v.version, v.display_name, v.description, v.department, v.tier, v.tags,
           v.aliases, v.premium, v.required_tier, v.model, v.tools, v.approval, v.budget_cents,
           v.max_steps, v.instructions, v.content_hash, v.created_at, a.search, v.use_for
    FROM agents a JOIN agent_versions v ON v.name = a.name AND v.version = a.version
    WHERE a.retired_at IS NULL;

GRANT SELECT ON agent_terms TO rota_app;

-- The description without the parts that say what the agent does not do: "Reviews code and never
-- merges it" is not about merging. Such a part begins after a punctuation mark, an "and" or a
-- "but", and goes on to the end of its sentence.
CREATE FUNCTION agent_claims(description text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(
        regexp_replace(description, '\m(and|but)\M', '|', 'gi'),
        '[^.;:!?,()|]*(\m(not|never|no|nor|neither|none|nothing|cannot)\M|n[''’]t\M)[^.;!?]*',
        ' ', 'gi');

-- A term counts most in the name and aliases, then in useFor and tags, in the description, and
-- least in the department. It counts up to twice as much if it occurs often.
CREATE FUNCTION agent_terms_of(
        name text, display_name text, aliases text[], use_for text[], tags text[], description text,
        department text)
    RETURNS TABLE (term text, strength real)
    LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT lexeme, max(weight) * (2 - 1.0 / sum(cardinality(positions)))
    FROM (VALUES
             (1.0, name || ' ' || display_name || ' ' || array_to_string(aliases, ' ')),
             (0.85, array_to_string(use_for || tags, ' ')),
             (0.25, agent_claims(description)),
             (0.05, department)
         ) AS fields (weight, words),
         unnest(agent_lexemes(words)) AS found (lexeme, positions, weights)
    GROUP BY lexeme;
END;

-- As before, but a word that is its own stem counts once, as every other word does.
CREATE OR REPLACE FUNCTION agent_lexemes(given text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT ts_delete(to_tsvector('pg_catalog.simple', agent_words(given)),
                     tsvector_to_array(stems)) || stems
    FROM to_tsvector('pg_catalog.english', agent_words(given)) AS stems;
END;

-- The words of a search, with their stems. Words like "the" and "for" have no stem. They count only
-- if the search has no other words.
CREATE FUNCTION agent_search_words(given text) RETURNS TABLE (word text, stems text[])
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 5
BEGIN ATOMIC
    WITH words AS (
        SELECT lexeme, ts_lexize('pg_catalog.english_stem', lexeme) AS stems
        FROM unnest(to_tsvector('pg_catalog.simple', agent_words(given)))
    )
    SELECT lexeme, stems FROM words
    WHERE stems <> '{}' OR NOT EXISTS (SELECT FROM words WHERE stems <> '{}');
END;

INSERT INTO agent_terms (term, name, strength)
SELECT found.term, v.name, found.strength
FROM agents a JOIN agent_versions v ON v.name = a.name AND v.version = a.version,
     agent_terms_of(v.name, v.display_name, v.aliases, v.use_for, v.tags, v.description,
                    v.department) AS found
WHERE a.retired_at IS NULL;
