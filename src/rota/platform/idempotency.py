"""Idempotency keys: a repeated request gets the stored response of the first one.

The key is claimed, the work is done and the response is stored in one transaction, so a crash
leaves all of it or nothing. A response can contain a secret, such as a new API key, so stored
responses are encrypted.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import Header
from pydantic import BaseModel, Field

from rota.platform.crypto import Vault
from rota.platform.db import AccountReader, AccountTransaction
from rota.platform.errors import Conflict
from rota.platform.http.schemas import shared

IdempotencyKey = Annotated[
    Annotated[str, Field(min_length=1, max_length=255)] | None,
    Header(
        description="A unique value, such as a UUID, that makes the request safe to repeat. For "
        "24 hours, a repeated request with the same key and body gets the first response again. "
        "The same key with a different body returns 409.",
        examples=["5f0c7a52-9c0e-4d0b-8a0e-2f7d1f6f2b11"],
        json_schema_extra=shared("IdempotencyKey"),
    ),
]


class IdempotencyKeyReused(Conflict):
    def __init__(self) -> None:
        super().__init__("This Idempotency-Key was used for a different request. Use a new key.")


class RequestInProgress(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "A request with this Idempotency-Key is in progress. Wait for it, then try again."
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The response of a request that can be repeated: its status and its JSON body."""

    status: int
    body: bytes
    # Whether it is the stored response of an earlier request.
    replayed: bool = False


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
    ) -> Outcome:
        """Does the work unless the key has a response. `request` must match the first one."""
        if key is None:
            return Outcome(status, _encode(await work()))
        await _claim(tx, key)
        if (stored := await self.stored(tx, key, request)) is not None:
            return stored
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
        return Outcome(status, body)

    async def stored(
        self,
        tx: AccountReader,
        key: str | None,
        request: tuple[str, BaseModel | None],
    ) -> Outcome | None:
        """The stored response of a key, for work that starts before the transaction."""
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
            raise IdempotencyKeyReused
        body = self._vault.open(row["sealed_body"], seal_context(tx.account_id, key))
        return Outcome(row["status"], body, replayed=True)


def seal_context(account_id: UUID, key: str) -> str:
    return f"idempotency_keys/{account_id}/{key}/sealed_body"


async def _claim(tx: AccountTransaction, key: str) -> None:
    """Locks the key until the transaction ends. Fails when another request has it."""
    digest = hashlib.sha256(tx.account_id.bytes + key.encode()).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    if not await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", number):
        raise RequestInProgress


def _fingerprint(operation: str, body: BaseModel | None) -> bytes:
    text = body.model_dump_json() if body is not None else ""
    return hashlib.sha256(f"{operation}\n{text}".encode()).digest()


def _encode(response: BaseModel) -> bytes:
    return response.model_dump_json(by_alias=True).encode()
