"""SQL that reads what must survive a restore, and applies it to the restored database.

An account's state says what can still act: sessions, keys, members, rules and so on. Everything
that the restored database has besides was ended after the moment, so it is ended again. Only rows
from before the state was read are compared, so what is created later stays.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from rota.platform.db import AccountReader, AccountTransaction, ReadConnection, WriteConnection
from rota.platform.transactions import execute_count


def _ids(table: str) -> str:
    return f"(SELECT coalesce(jsonb_agg(id), '[]') FROM {table} WHERE account_id = $1)"  # noqa: S608


def _hash(*columns: str) -> str:
    """A hash instead of the values, which can be secrets."""
    values = ", ".join(columns)
    return f"encode(sha256(convert_to(jsonb_build_array({values})::text, 'UTF8')), 'hex')"


# What decides where something is sent, and with which secret.
_WEBHOOK_HASH = _hash("url", "events", "families", "sealed_secret")
_SERVER_HASH = _hash("url", "transport", "sealed_headers")
_CHAT_HASH = _hash("chat_service", "sealed_chat_url")
# A retry copies calls with their start. One without a result is planned again, so what its run has
# started itself is later than that.
_COPIED_START = "copied AND (state = 'finished' OR started_at < planned_at)"

_STATE = f"""
SELECT jsonb_build_object(
    'kind', a.kind,
    'erased', a.erased_at IS NOT NULL,
    'policy', jsonb_build_array(a.second_person, a.anyone_approves, a.max_cost_cents,
                                a.tasks_days, a.steps_days, a.events_days, a.audit_days),
    'sequence', coalesce((SELECT last_sequence FROM account_heads WHERE account_id = $1), 0),
    'audit', (SELECT jsonb_build_object('sequence', sequence, 'hash', encode(hash, 'hex'))
              FROM audit_heads WHERE account_id = $1),
    'sessions', (SELECT coalesce(jsonb_agg(id), '[]') FROM sessions
                 WHERE user_id = $1 AND revoked_at IS NULL),
    'keys', {_ids("api_keys")},
    'members', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                    'user', user_id, 'role', role, 'approver', approver)), '[]')
                FROM members WHERE account_id = $1),
    'invitations', {_ids("invitations")},
    'servers', (SELECT coalesce(jsonb_object_agg(id, jsonb_build_object(
                    'hash', {_SERVER_HASH}, 'tools', allowed_tools)), '{{}}')
                FROM mcp_servers WHERE account_id = $1),
    'webhooks', {_ids("webhooks")},
    'enabledWebhooks', (SELECT coalesce(jsonb_object_agg(id, {_WEBHOOK_HASH}), '{{}}')
                        FROM webhooks WHERE account_id = $1 AND enabled),
    'schedules', {_ids("schedules")},
    'activeSchedules', (SELECT coalesce(jsonb_agg(id), '[]') FROM schedules
                        WHERE account_id = $1 AND NOT paused),
    'rules', (SELECT coalesce(jsonb_object_agg(id, uses), '{{}}') FROM rules
              WHERE account_id = $1 AND revoked_at IS NULL),
    'notifications', (SELECT coalesce(jsonb_object_agg(user_id, jsonb_build_object(
                          'mail', mail_kinds, 'chat', chat_kinds, 'content', content,
                          'chatHash', {_CHAT_HASH})), '{{}}')
                      FROM notification_settings WHERE account_id = $1),
    'cancelled', (SELECT coalesce(jsonb_agg(id), '[]') FROM tasks
                  WHERE account_id = $1 AND status = 'CANCELLED' AND updated_at >= $2),
    'writes', (SELECT coalesce(jsonb_agg(jsonb_build_array(task_id, run, step, call)), '[]')
               FROM steps WHERE account_id = $1 AND kind = 'tool' AND NOT read_only
                 AND started_at >= $2 AND NOT ({_COPIED_START})),
    'grants', (SELECT coalesce(jsonb_agg(jsonb_build_array(key, -granted)), '[]')
               FROM entries WHERE account_id = $1 AND kind = 'grant' AND at >= $2)
)
FROM accounts a WHERE a.id = $1
"""  # noqa: S608


async def changed_accounts(
    connection: ReadConnection, since: datetime, nobody: UUID
) -> list[tuple[UUID, str]]:
    """Accounts with a change since then, and their kinds. Every change has an audit entry."""
    rows = await connection.fetch(
        """
        SELECT a.id, a.kind FROM accounts a WHERE a.id <> $2 AND a.id IN (
            SELECT account_id FROM audit_entries WHERE at >= $1)
        ORDER BY a.id
        """,
        since,
        nobody,
    )
    return [(row["id"], row["kind"]) for row in rows]


async def state(tx: AccountReader, since: datetime) -> dict[str, Any] | None:
    found: dict[str, Any] | None = await tx.fetchval(_STATE, tx.account_id, since)
    return found


async def used_tokens(connection: ReadConnection) -> list[tuple[bytes, datetime]]:
    """Sign-in tokens that were used and could be used again."""
    rows = await connection.fetch(
        "SELECT token_hash, expires_at FROM used_id_tokens WHERE expires_at > now()"
    )
    return [(row["token_hash"], row["expires_at"]) for row in rows]


async def add_used_tokens(
    connection: WriteConnection, tokens: Sequence[tuple[bytes, datetime]]
) -> None:
    await connection.executemany(
        """
        INSERT INTO used_id_tokens (token_hash, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING
        """,
        tokens,
    )


async def audit_head(tx: AccountReader) -> tuple[int | None, str | None] | None:
    """The end of the account's trail. None if the account does not exist."""
    row = await tx.fetchrow(
        """
        SELECT h.sequence, encode(h.hash, 'hex') AS hash
        FROM accounts a LEFT JOIN audit_heads h ON h.account_id = a.id WHERE a.id = $1
        """,
        tx.account_id,
    )
    return (row["sequence"], row["hash"]) if row else None


async def end_sessions(
    tx: AccountTransaction, kept: Sequence[UUID], before: datetime
) -> list[UUID]:
    return await _changed(
        tx,
        """
        UPDATE sessions SET revoked_at = now() WHERE user_id = $1 AND revoked_at IS NULL
          AND id <> ALL($2) AND created_at < $3 RETURNING id
        """,
        kept,
        before,
    )


async def extra_keys(tx: AccountReader, kept: Sequence[UUID], before: datetime) -> list[UUID]:
    return await _changed(
        tx,
        "SELECT id FROM api_keys WHERE account_id = $1 AND id <> ALL($2) AND created_at < $3",
        kept,
        before,
    )


async def delete_others(
    tx: AccountTransaction, table: str, kept: Sequence[UUID], before: datetime
) -> list[UUID]:
    """Deletes the rows of a table of `applying.DELETED` that no longer existed."""
    return await _changed(
        tx,
        f"""
        DELETE FROM {table} WHERE account_id = $1 AND id <> ALL($2) AND created_at < $3
        RETURNING id
        """,  # noqa: S608
        kept,
        before,
    )


async def disable_webhooks(
    tx: AccountTransaction, kept: Sequence[UUID], hashes: Sequence[str], before: datetime
) -> list[UUID]:
    """Disables webhooks that were disabled, or have another URL, secret or other events by now."""
    # The release before does not know the reason `restored`. The next release can write it here.
    return await _changed(
        tx,
        f"""
        UPDATE webhooks SET enabled = false, disabled_reason = 'paused', disabled_at = now(),
            revision = revision + 1, due_at = NULL, updated_at = now()
        WHERE account_id = $1 AND enabled AND created_at < $4 AND NOT EXISTS (
            SELECT FROM unnest($2::uuid[], $3::text[]) AS k (id, hash)
            WHERE k.id = webhooks.id AND k.hash = {_WEBHOOK_HASH})
        RETURNING id
        """,  # noqa: S608
        kept,
        hashes,
        before,
    )


async def narrow_servers(
    tx: AccountTransaction, wanted: dict[str, dict[str, Any]], before: datetime
) -> list[UUID]:
    """Tools that were no longer allowed are not allowed. A server with another address or other
    headers by now gets no headers, and none of its tools is allowed."""
    changed = []
    for server, known in wanted.items():
        changed += await _changed(
            tx,
            f"""
            UPDATE mcp_servers SET revision = revision + 1, updated_at = now(),
                sealed_headers = CASE WHEN {_SERVER_HASH} = $3 THEN sealed_headers END,
                allowed_tools = CASE WHEN {_SERVER_HASH} <> $3 THEN '{{}}'
                    WHEN allowed_tools IS NULL THEN $4::text[]
                    ELSE ARRAY(SELECT unnest(allowed_tools) INTERSECT SELECT unnest($4::text[]))
                    END
            WHERE account_id = $1 AND id = $2 AND created_at < $5 AND ({_SERVER_HASH} <> $3
                OR $4::text[] IS NOT NULL
                AND (allowed_tools IS NULL OR NOT allowed_tools <@ $4::text[])) RETURNING id
            """,  # noqa: S608
            UUID(server),
            known["hash"],
            known["tools"],
            before,
        )
    return changed


async def pause_schedules(
    tx: AccountTransaction, kept: Sequence[UUID], before: datetime
) -> list[UUID]:
    return await _changed(
        tx,
        """
        UPDATE schedules SET paused = true, next_at = NULL, check_at = NULL, updated_at = now()
        WHERE account_id = $1 AND NOT paused AND id <> ALL($2) AND created_at < $3 RETURNING id
        """,
        kept,
        before,
    )


async def revoke_rules(
    tx: AccountTransaction, kept: Sequence[UUID], uses: Sequence[int], before: datetime
) -> list[UUID]:
    """Revokes rules that were revoked. The others have at least as many uses as they had."""
    await tx.execute(
        """
        UPDATE rules SET uses = least(max_uses, greatest(rules.uses, k.uses))
        FROM unnest($2::uuid[], $3::integer[]) AS k (id, uses)
        WHERE account_id = $1 AND rules.id = k.id AND rules.uses < k.uses
        """,
        tx.account_id,
        list(kept),
        list(uses),
    )
    return await _changed(
        tx,
        """
        UPDATE rules SET revoked_at = now() WHERE account_id = $1 AND revoked_at IS NULL
          AND id <> ALL($2) AND created_at < $3 RETURNING id
        """,
        kept,
        before,
    )


async def limit_notifications(
    tx: AccountTransaction, wanted: dict[str, dict[str, Any]], before: datetime
) -> list[UUID]:
    """Turns off messages that were turned off, and those to a channel that was replaced. Returns
    the users."""
    users = [UUID(user) for user in wanted]
    changed = await _changed(
        tx,
        """
        UPDATE notification_settings SET mail_kinds = '{}', chat_kinds = '{}', updated_at = now()
        WHERE account_id = $1 AND user_id <> ALL($2) AND updated_at < $3
          AND (mail_kinds <> '{}' OR chat_kinds <> '{}') RETURNING user_id
        """,
        users,
        before,
    )
    for user, known in wanted.items():
        changed += await _changed(
            tx,
            f"""
            UPDATE notification_settings SET updated_at = now(),
                content = CASE WHEN $6::text = 'minimal' THEN $6::text ELSE content END,
                mail_kinds = ARRAY(SELECT unnest(mail_kinds) INTERSECT SELECT unnest($3::text[])),
                chat_kinds = ARRAY(SELECT unnest(chat_kinds) INTERSECT SELECT unnest($4::text[])
                                   WHERE {_CHAT_HASH} = $7)
            WHERE account_id = $1 AND user_id = ANY($2) AND updated_at < $5
              AND NOT (mail_kinds <@ $3 AND chat_kinds <@ $4 AND (content = $6 OR $6 = 'full')
                       AND (chat_kinds = '{{}}' OR {_CHAT_HASH} = $7)) RETURNING user_id
            """,  # noqa: S608
            [UUID(user)],
            known["mail"],
            known["chat"],
            before,
            known["content"],
            known["chatHash"],
        )
    return changed


async def set_policy(tx: AccountTransaction, policy: Sequence[Any]) -> bool:
    """Whether it was another one."""
    changed = await tx.fetchval(
        """
        UPDATE accounts SET second_person = $2, anyone_approves = $3, max_cost_cents = $4,
            tasks_days = $5, steps_days = $6, events_days = $7, audit_days = $8
        WHERE id = $1 AND (second_person, anyone_approves, max_cost_cents, tasks_days, steps_days,
            events_days, audit_days) IS DISTINCT FROM ($2, $3, $4::integer, $5::integer,
            $6::integer, $7::integer, $8::integer)
        RETURNING true
        """,
        tx.account_id,
        *policy,
    )
    return bool(changed)


async def members_before(tx: AccountReader, before: datetime) -> list[UUID]:
    return await _changed(
        tx, "SELECT user_id FROM members WHERE account_id = $1 AND created_at < $2", before
    )


async def skip_numbers(tx: AccountTransaction, through: int) -> int | None:
    """Uses no number of an event up to this one. Returns the first that is skipped, or None."""
    first: int | None = await tx.fetchval(
        """
        WITH head AS (
            SELECT last_sequence FROM account_heads WHERE account_id = $1 AND last_sequence < $2
            FOR UPDATE
        )
        UPDATE account_heads h SET last_sequence = $2,
            skipped = skipped + $2 - head.last_sequence
        FROM head WHERE h.account_id = $1 RETURNING head.last_sequence + 1
        """,
        tx.account_id,
        through,
    )
    return first


async def all_accounts(connection: ReadConnection) -> list[UUID]:
    rows = await connection.fetch("SELECT account_id FROM account_heads ORDER BY account_id")
    return [row["account_id"] for row in rows]


async def open_runs(tx: AccountReader) -> int:
    """How many tasks have a run that continues after the restore."""
    found: int = await tx.fetchval(
        """
        SELECT count(*) FROM tasks WHERE account_id = $1 AND hosted
          AND status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL')
        """,
        tx.account_id,
    )
    return found


async def unknown_writes(
    tx: AccountReader, writes: Sequence[tuple[UUID, int, int, int]]
) -> set[UUID]:
    """The open tasks that have made one of these calls, and do not know it."""
    rows = await tx.fetch(
        """
        SELECT DISTINCT t.id FROM tasks t
        JOIN unnest($2::uuid[], $3::integer[], $4::integer[], $5::integer[])
            AS w (task_id, run, step, call) ON w.task_id = t.id
        WHERE t.account_id = $1 AND t.status IN ('PENDING', 'RUNNING', 'WAITING_APPROVAL')
          AND t.run <= w.run
          AND NOT EXISTS (
            SELECT FROM steps s WHERE s.account_id = $1 AND s.task_id = w.task_id
              AND s.run = w.run AND s.step = w.step AND s.call = w.call
              AND s.state IN ('started', 'finished'))
        """,
        tx.account_id,
        *[list(column) for column in zip(*writes, strict=True)],
    )
    return {row["id"] for row in rows}


async def make_checks_due_now(connection: WriteConnection) -> int:
    """Makes workers start the runs again that Temporal does not have any more."""
    return await execute_count(
        connection,
        "UPDATE outbox SET due_at = now(), ready = true "
        "WHERE kind = 'run.check' AND dead_at IS NULL",
    )


async def other_connections(connection: ReadConnection) -> int:
    """How many connections other processes of the service have to this database."""
    found: int = await connection.fetchval(
        """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'rota'
          AND pid <> pg_backend_pid()
        """
    )
    return found


async def _changed(tx: AccountReader, statement: str, *arguments: object) -> list[UUID]:
    values = [list(each) if isinstance(each, list | tuple) else each for each in arguments]
    return [row[0] for row in await tx.fetch(statement, tx.account_id, *values)]
