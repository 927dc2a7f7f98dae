"""SQL for sessions and API keys."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rota.accounts import members
from rota.accounts import queries as accounts
from rota.accounts.model import Kind, Role
from rota.auth.caller import Scope
from rota.platform.db import AccountReader, AccountTransaction, ReadConnection, WriteConnection


@dataclass(frozen=True, slots=True)
class AccountAccess:
    """A user's role in an account, and the tiers that apply."""

    account_id: UUID
    kind: Kind
    role: Role
    tier: str
    user_tier: str
    approver: bool = False


@dataclass(frozen=True, slots=True)
class KeyOwner:
    account_id: UUID
    user_id: UUID
    key_id: UUID


@dataclass(frozen=True, slots=True)
class KeyAccess:
    """What a valid key gives access to."""

    scopes: frozenset[str]
    account: AccountAccess
    # Whether its use should be recorded, which is once a minute.
    record_use: bool


@dataclass(frozen=True, slots=True)
class SessionAccess:
    personal: AccountAccess
    # Whether its use should be recorded, which is once a minute.
    record_use: bool


@dataclass(frozen=True, slots=True)
class ApiKey:
    id: UUID
    name: str
    prefix: str
    scopes: list[str]
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    # The user who created the key, and the user's name at that time.
    user_id: UUID
    created_by_name: str | None


@dataclass(frozen=True, slots=True)
class Session:
    id: UUID
    device: str | None
    address: str | None
    created_at: datetime
    last_seen_at: datetime


_KEY_COLUMNS = (
    "id, name, prefix, scopes, created_at, last_used_at, expires_at, user_id, created_by_name"
)


async def use_once(connection: WriteConnection, token_hash: bytes, expires_at: datetime) -> bool:
    """Stores an ID token or an authorization code as used. False if it was used before. Also
    deletes some expired rows."""
    stored = await connection.fetchval(
        """
        WITH swept AS (
            DELETE FROM used_id_tokens WHERE token_hash IN (
                SELECT token_hash FROM used_id_tokens WHERE expires_at < now() - interval '1 minute'
                LIMIT 10 FOR UPDATE SKIP LOCKED
            )
        )
        INSERT INTO used_id_tokens (token_hash, expires_at) VALUES ($1, $2)
        ON CONFLICT DO NOTHING RETURNING true
        """,
        token_hash,
        expires_at,
    )
    return bool(stored)


async def create_session(
    connection: WriteConnection,
    user_id: UUID,
    session_id: UUID,
    device: str | None,
    address: str | None,
    verified_email: str | None,
) -> None:
    await connection.execute(
        """
        INSERT INTO sessions (user_id, id, device, address, verified_email, last_seen_at)
        VALUES ($1, $2, $3, $4, $5, now())
        """,
        user_id,
        session_id,
        device,
        address,
        verified_email,
    )


async def active_sessions(
    connection: ReadConnection, user_id: UUID, idle_days: int
) -> list[Session]:
    """The sessions of a user that have not ended, the one that was used last first."""
    rows = await connection.fetch(
        """
        SELECT id, device, address, created_at,
               greatest(last_seen_at, refreshed_at) AS last_seen_at
        FROM sessions
        WHERE user_id = $1 AND revoked_at IS NULL
          AND refreshed_at > now() - make_interval(days => $2)
        ORDER BY greatest(last_seen_at, refreshed_at) DESC, id DESC
        """,
        user_id,
        idle_days,
    )
    return [Session(**row) for row in rows]


async def record_seen(connection: WriteConnection, user_id: UUID, session_id: UUID) -> None:
    await connection.execute(
        "UPDATE sessions SET last_seen_at = now() WHERE user_id = $1 AND id = $2",
        user_id,
        session_id,
    )


async def is_session_active(
    connection: ReadConnection, user_id: UUID, session_id: UUID, idle_days: int
) -> bool:
    active = await connection.fetchval(
        """
        SELECT true FROM sessions
        WHERE user_id = $1 AND id = $2 AND revoked_at IS NULL
          AND refreshed_at > now() - make_interval(days => $3)
        """,
        user_id,
        session_id,
        idle_days,
    )
    return bool(active)


async def record_refresh(connection: WriteConnection, user_id: UUID, session_id: UUID) -> None:
    await connection.execute(
        "UPDATE sessions SET refreshed_at = now() WHERE user_id = $1 AND id = $2",
        user_id,
        session_id,
    )


async def revoke_session(connection: WriteConnection, user_id: UUID, session_id: UUID) -> bool:
    """Whether the session was active before."""
    revoked = await connection.fetchval(
        """
        UPDATE sessions SET revoked_at = now()
        WHERE user_id = $1 AND id = $2 AND revoked_at IS NULL RETURNING true
        """,
        user_id,
        session_id,
    )
    return bool(revoked)


async def personal_access(connection: ReadConnection, user_id: UUID) -> AccountAccess | None:
    tier = await connection.fetchval(
        """
        SELECT a.tier FROM accounts a JOIN users u ON u.id = a.id
        WHERE a.id = $1 AND a.erased_at IS NULL
        """,
        user_id,
    )
    return AccountAccess(user_id, "personal", "owner", tier, tier) if tier is not None else None


async def session_access(
    connection: ReadConnection, user_id: UUID, session_id: UUID, idle_days: int
) -> SessionAccess | None:
    """`is_session_active` and `personal_access` in one query, for most requests. None if the
    session has ended."""
    row = await connection.fetchrow(
        """
        SELECT a.tier, s.last_seen_at IS NULL OR s.last_seen_at < now() - interval '1 minute'
               AS record_use
        FROM sessions s
        JOIN users u ON u.id = s.user_id
        JOIN accounts a ON a.id = s.user_id
        WHERE s.user_id = $1 AND s.id = $2 AND s.revoked_at IS NULL AND a.erased_at IS NULL
          AND s.refreshed_at > now() - make_interval(days => $3)
        """,
        user_id,
        session_id,
        idle_days,
    )
    if row is None:
        return None
    tier = row["tier"]
    personal = AccountAccess(user_id, "personal", "owner", tier, tier)
    return SessionAccess(personal, row["record_use"])


async def company_access(connection: ReadConnection, user_id: UUID) -> list[AccountAccess]:
    rows = await connection.fetch(
        """
        SELECT a.id AS account_id, a.kind, m.role,
               m.approver OR a.anyone_approves AS approver, a.tier, p.tier AS user_tier
        FROM members m
        JOIN accounts a ON a.id = m.account_id
        JOIN accounts p ON p.id = m.user_id
        WHERE m.user_id = $1 AND a.erased_at IS NULL AND p.erased_at IS NULL
        """,
        user_id,
    )
    return [AccountAccess(**row) for row in rows]


async def find_key_owners(
    connection: ReadConnection, secret_hashes: list[bytes]
) -> dict[bytes, KeyOwner]:
    """The owners of the keys that exist, by the hash of the secret."""
    rows = await connection.fetch(
        """
        SELECT secret_hash, account_id, user_id, key_id FROM api_key_hashes
        WHERE secret_hash = ANY($1)
        """,
        secret_hashes,
    )
    return {
        row["secret_hash"]: KeyOwner(row["account_id"], row["user_id"], row["key_id"])
        for row in rows
    }


async def account_of_key(connection: ReadConnection, key_id: UUID) -> UUID | None:
    """Reads all keys, so only the operator asks for it."""
    found: UUID | None = await connection.fetchval(
        "SELECT account_id FROM api_key_hashes WHERE key_id = $1", key_id
    )
    return found


async def key_access(tx: AccountReader, owner: KeyOwner) -> KeyAccess | None:
    """None if the key is deleted or expired, or if its creator has left the company."""
    row = await tx.fetchrow(
        """
        SELECT k.scopes, a.id AS account_id, a.kind, a.tier, p.tier AS user_tier,
               coalesce(m.role, 'owner') AS role,
               coalesce(m.approver OR a.anyone_approves, false) AS approver,
               k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute' AS record_use
        FROM api_keys k
        JOIN accounts a ON a.id = k.account_id
        JOIN accounts p ON p.id = $3
        LEFT JOIN members m ON m.account_id = a.id AND m.user_id = p.id
        WHERE k.account_id = $1 AND k.id = $2 AND (k.expires_at IS NULL OR k.expires_at > now())
          AND a.erased_at IS NULL AND p.erased_at IS NULL
          AND (a.id = p.id OR m.user_id IS NOT NULL)
        """,
        owner.account_id,
        owner.key_id,
        owner.user_id,
    )
    if row is None:
        return None
    fields = dict(row)
    scopes, record_use = fields.pop("scopes"), fields.pop("record_use")
    return KeyAccess(frozenset(scopes), AccountAccess(**fields), record_use)


async def record_key_use(tx: AccountTransaction, key_id: UUID) -> None:
    await tx.execute(
        "UPDATE api_keys SET last_used_at = now() WHERE account_id = $1 AND id = $2",
        tx.account_id,
        key_id,
    )


async def may_act(tx: AccountReader, user_id: UUID, key_id: UUID | None, scope: Scope) -> bool:
    """Whether a user can still act in the account, with the key if one is given. For work that a
    request has ordered for later."""
    if not await members.is_member(tx, user_id):
        return False
    if key_id is None:
        return True
    return key_id in await working_keys(tx, (key_id,), scope)


async def working_keys(
    tx: AccountReader, key_ids: Collection[UUID], scope: Scope
) -> frozenset[UUID]:
    """Those of the keys that exist, have the scope and have not expired."""
    if not key_ids:
        return frozenset()
    rows = await tx.fetch(
        """
        SELECT id FROM api_keys WHERE account_id = $1 AND id = ANY($2::uuid[]) AND $3 = ANY(scopes)
          AND (expires_at IS NULL OR expires_at > now())
        """,
        tx.account_id,
        list(key_ids),
        scope,
    )
    return frozenset(row["id"] for row in rows)


async def list_keys(tx: AccountReader) -> list[ApiKey]:
    rows = await tx.fetch(
        f"SELECT {_KEY_COLUMNS} FROM api_keys WHERE account_id = $1 ORDER BY id DESC",  # noqa: S608
        tx.account_id,
    )
    return [ApiKey(**row) for row in rows]


async def create_key(
    tx: AccountTransaction, owner: KeyOwner, key: ApiKey, secret_hash: bytes, limit: int
) -> bool:
    """False if the account already has `limit` keys."""
    # Lock first: the statement that counts must see the keys of concurrent transactions.
    await accounts.lock(tx)
    created = await tx.fetchval(
        """
        WITH key AS (
            INSERT INTO api_keys (account_id, id, user_id, name, prefix, secret_hash, scopes,
                                  created_at, expires_at, created_by_name)
            SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $11
            WHERE (SELECT count(*) FROM api_keys WHERE account_id = $1) < $10
            RETURNING id
        )
        INSERT INTO api_key_hashes (secret_hash, account_id, user_id, key_id)
        SELECT $6, $1, $3, id FROM key RETURNING true
        """,
        owner.account_id,
        key.id,
        owner.user_id,
        key.name,
        key.prefix,
        secret_hash,
        key.scopes,
        key.created_at,
        key.expires_at,
        limit,
        key.created_by_name,
    )
    return bool(created)


async def delete_key(tx: AccountTransaction, key_id: UUID) -> bytes | None:
    """The hash of the deleted key's secret, or None if the key does not exist."""
    secret_hash: bytes | None = await tx.fetchval(
        """
        WITH key AS (
            DELETE FROM api_keys WHERE account_id = $1 AND id = $2 RETURNING secret_hash
        )
        DELETE FROM api_key_hashes USING key WHERE api_key_hashes.secret_hash = key.secret_hash
        RETURNING api_key_hashes.secret_hash
        """,
        tx.account_id,
        key_id,
    )
    return secret_hash


async def delete_keys_of(tx: AccountTransaction, user_id: UUID) -> list[tuple[UUID, bytes]]:
    """Deletes the keys that a user created in the account. Their IDs and the hashes of their
    secrets."""
    rows = await tx.fetch(
        """
        WITH key AS (
            DELETE FROM api_keys WHERE account_id = $1 AND user_id = $2 RETURNING id, secret_hash
        )
        DELETE FROM api_key_hashes USING key WHERE api_key_hashes.secret_hash = key.secret_hash
        RETURNING key.id, key.secret_hash
        """,
        tx.account_id,
        user_id,
    )
    return [(row["id"], row["secret_hash"]) for row in rows]
