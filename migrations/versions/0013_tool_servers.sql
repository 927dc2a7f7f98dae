-- Who accepted the definition, and when. `accepted_with`: the name of the user and the credential.
-- NULL for definitions that were accepted before this was recorded.
ALTER TABLE mcp_tools
    ADD COLUMN accepted_by uuid,
    ADD COLUMN accepted_with jsonb,
    ADD COLUMN accepted_at timestamptz;
