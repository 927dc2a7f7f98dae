-- Input tokens include what the provider read from and wrote to its cache. Output tokens include
-- reasoning. `estimated`: Rota counted the tokens, because the provider did not report them.
-- A model call in the state `started` is charged, but its answer is not applied yet.
ALTER TABLE steps
    ADD COLUMN cache_read_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN cache_write_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN reasoning_tokens bigint NOT NULL DEFAULT 0,
    ADD COLUMN estimated boolean NOT NULL DEFAULT false;

ALTER TABLE entries ADD COLUMN estimated boolean NOT NULL DEFAULT false;
