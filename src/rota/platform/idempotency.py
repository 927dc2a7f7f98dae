"""Requests that may be sent again: the first answer is kept and given again.

The key is claimed, the work done and the answer kept in one transaction, so a
crash leaves either all of it or nothing. Answers can hold secrets (a new API
key, say), so they are sealed.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import UUID

from fastapi import Header, Response
from pydantic import BaseModel, Field

from rota.platform.crypto import Vault
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.errors import Conflict

IdempotencyKey = Annotated[
    Annotated[str, Field(min_length=1, max_length=255)] | None,
    Header(description="Makes the request safe to send again, for 24 hours."),
]

_JSON = "application/json"


class Idempotency:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    async def once(
        self,
        tx: AccountTransaction,
        key: str | None,
        request: tuple[str, BaseModel | None],
        status: int,
        work: Callable[[], Awaitable[BaseModel]],
    ) -> Response:
        """Does the work, unless its key has an answer already. `request` is what must be equal."""
        if key is None:
            return _answer(status, _encode(await work()))
        await _claim(tx, key)
        if (kept := await self.kept(tx, key, request)) is not None:
            return kept
        body = _encode(await work())
        await tx.execute(
            """
            WITH swept AS (
                DELETE FROM idempotency_keys WHERE account_id = $1 AND key IN (
                    SELECT key FROM idempotency_keys
                    WHERE account_id = $1 AND key <> $2
                      AND created_at <= now() - interval '24 hours'
                    LIMIT 10 FOR UPDATE SKIP LOCKED
                )
            )
            INSERT INTO idempotency_keys (account_id, key, fingerprint, status, sealed_body)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint,
                status = excluded.status, sealed_body = excluded.sealed_body, created_at = now()
            """,
            tx.account_id,
            key,
            _fingerprint(*request),
            status,
            self._vault.seal(body, seal_context(tx.account_id, key)),
        )
        return _answer(status, body)

    async def kept(
        self,
        tx: AccountReader,
        key: str | None,
        request: tuple[str, BaseModel | None],
    ) -> Response | None:
        """The answer that the key has already, for work that begins outside of a transaction."""
        if key is None:
            return None
        row = await tx.fetchrow(
            """
            SELECT fingerprint, status, sealed_body FROM idempotency_keys
            WHERE account_id = $1 AND key = $2 AND created_at > now() - interval '24 hours'
            """,
            tx.account_id,
            key,
        )
        if row is None:
            return None
        if row["fingerprint"] != _fingerprint(*request):
            raise Conflict("This Idempotency-Key was used for another request. Use a new key.")
        body = self._vault.open(row["sealed_body"], seal_context(tx.account_id, key))
        return _answer(row["status"], body, replayed=True)


def seal_context(account_id: UUID, key: str) -> str:
    return f"idempotency_keys/{account_id}/{key}/sealed_body"


async def _claim(tx: AccountTransaction, key: str) -> None:
    """Holds the key until the transaction ends, or says that another request does."""
    digest = hashlib.sha256(tx.account_id.bytes + key.encode()).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    if not await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", number):
        raise Conflict(
            "A request with this Idempotency-Key is under way. Wait for it, then ask again."
        )


def _fingerprint(operation: str, body: BaseModel | None) -> bytes:
    text = body.model_dump_json() if body is not None else ""
    return hashlib.sha256(f"{operation}\n{text}".encode()).digest()


def _encode(answer: BaseModel) -> bytes:
    return answer.model_dump_json(by_alias=True).encode()


def _answer(status: int, body: bytes, *, replayed: bool = False) -> Response:
    headers = {"Idempotent-Replayed": "true"} if replayed else None
    return Response(body, status_code=status, headers=headers, media_type=_JSON)
