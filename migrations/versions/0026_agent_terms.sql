-- Recent minor releases of PostgreSQL refuse to add a column to a table whose row type a function
-- takes. 0012 created such a function. It now creates this one, and databases from before get it
-- here.
DROP FUNCTION IF EXISTS agent_terms_of(agent_versions);

CREATE OR REPLACE FUNCTION agent_terms_of(
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
