"""Finds transactions that change something without an audit entry.

Triggers log the transaction of every change of every table. The transaction of an audit entry is
the `xmin` of its row. So a change that was forgotten is found wherever it is made: in a route, a
sweep, a run or a command.
"""

from typing import Any

# What the service only notes for itself: the table, the statement, and why it needs no entry. A
# transaction that changes nothing else needs none.
NOTES = (
    ("account_heads", "%", "numbers and totals of rows that are in other tables"),
    ("installation", "%SET beat = beat + 1%", "a worker's sign every 30 s that nothing was lost"),
    ("idempotency_keys", "%", "the response of a request that has its own entry"),
    ("mcp_checks", "%", "the history of checks; a change of the status appends an event"),
    ("notices", "%", "causes of notifications; what happened has its own entry"),
    ("notification_items", "%", "what waits to be sent"),
    ("notification_queues", "%", "messages that a worker sends"),
    ("outbox", "%", "instructions that a relay takes, moves and deletes"),
    ("places", "%", "the queue of runs that wait for a place"),
    ("used_id_tokens", "%", "ID tokens that cannot be used again"),
    ("api_keys", "%SET last_used_at%", "when a key was used last"),
    ("sessions", "%SET last_seen_at%", "when a session was used last"),
    ("mcp_servers", "%check_due_at%", "when a server is checked next"),
    ("webhooks", "%SET due_at%", "how far deliveries have come, and when to look again"),
    ("webhook_deliveries", "%", "the history of deliveries"),
    ("schedules", "%SET check_at%", "when a worker looks at a schedule that waits"),
    ("balances", "%period_anchor = NULL%", "when an unpaid month is checked again"),
    ("subscriptions", "%due_at%", "when a subscription is checked again"),
)

_INSTALL = """
    CREATE UNLOGGED TABLE IF NOT EXISTS watched_changes (
        transaction bigint NOT NULL, role text NOT NULL, relation text NOT NULL,
        statement text NOT NULL);
    GRANT INSERT ON watched_changes TO PUBLIC;
    CREATE OR REPLACE FUNCTION watch_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        -- A statement that changes no row fires, too.
        IF EXISTS (SELECT FROM changed_rows) THEN
            INSERT INTO public.watched_changes
            VALUES (pg_current_xact_id()::text::bigint, current_user, TG_TABLE_NAME,
                    current_query());
        END IF;
        RETURN NULL;
    END $$;
"""
_TRIGGERS = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}


async def install(connection: Any) -> None:
    await connection.execute(_INSTALL)
    # One table after the other: a lock on several could deadlock with the service.
    for name in await _tables(connection):
        for change, rows in _TRIGGERS.items():
            await connection.execute(
                f"CREATE OR REPLACE TRIGGER watch_{change.lower()} AFTER {change} ON {name} "
                f"REFERENCING {rows} TABLE AS changed_rows "
                "FOR EACH STATEMENT EXECUTE FUNCTION watch_change()"
            )


async def remove(connection: Any) -> None:
    for name in await _tables(connection):
        for change in _TRIGGERS:
            await connection.execute(f"DROP TRIGGER watch_{change.lower()} ON {name}")
    await connection.execute("DROP FUNCTION watch_change; DROP TABLE watched_changes")


async def _tables(connection: Any) -> list[str]:
    rows = await connection.fetch(
        """
        SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
          AND NOT relispartition AND relname NOT LIKE 'audit\\_%' AND relname <> 'watched_changes'
        """
    )
    return [row["name"] for row in rows]


async def forgotten(connection: Any) -> list[str]:
    """The changes of transactions without an entry, each with its table and its statement."""
    rows = await connection.fetch(
        """
        SELECT DISTINCT c.relation, left(regexp_replace(c.statement, '\\s+', ' ', 'g'), 300) AS text
        FROM watched_changes c
        -- Tests change rows as the owner.
        WHERE c.role LIKE 'rota\\_%' AND NOT EXISTS (
            SELECT FROM audit_entries e
            WHERE e.xmin::text::bigint = mod(c.transaction, 4294967296)
        ) AND NOT EXISTS (
            SELECT FROM unnest($1::text[], $2::text[]) AS n (relation, statement)
            WHERE n.relation = c.relation AND c.statement LIKE n.statement)
        ORDER BY 1, 2
        """,
        [relation for relation, *_ in NOTES],
        [statement for _, statement, _ in NOTES],
    )
    return [f"{row['relation']}: {row['text']}" for row in rows]
