"""Idempotency keys: a repeated request gets the stored response of the first one.

The key is claimed, the work is done and the response is stored in one transaction, so a crash
leaves all of it or nothing. A key belongs to the user who sent it: another member of the account
can use the same key for another request. A secret in a response, such as a new API key, is never
stored. Stored responses are encrypted, because they contain the texts of tasks.
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
from rota.platform.ids import to_wire

IdempotencyKey = Annotated[
    Annotated[str, Field(min_length=1, max_length=255)] | None,
    Header(
        description="A unique value, such as a UUID, that makes the request safe to repeat. For "
        "24 hours, a repeated request with the same key and body gets the first response again. "
        "The same key with a different body returns 409. A secret is not shown again: it is null "
        "in the repeated response.",
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
        response = await work()
        owned = _owned(tx, key)
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
            owned,
            _fingerprint(*request),
            status,
            self._vault.seal(
                _encode(_without_secret(response)), seal_context(tx.account_id, owned)
            ),
        )
        return Outcome(status, _encode(response))

    async def stored(
        self,
        tx: AccountReader,
        key: str | None,
        request: tuple[str, BaseModel | None],
    ) -> Outcome | None:
        """The stored response of a key, for work that starts before the transaction."""
        if key is None:
            return None
        owned = _owned(tx, key)
        row = await tx.fetchrow(
            """
            SELECT fingerprint, status, sealed_body FROM idempotency_keys
            WHERE account_id = $1 AND key = $2 AND created_at > now() - interval '24 hours'
            """,
            tx.account_id,
            owned,
        )
        if row is None:
            return None
        if row["fingerprint"] != _fingerprint(*request):
            raise IdempotencyKeyReused
        body = self._vault.open(row["sealed_body"], seal_context(tx.account_id, owned))
        return Outcome(row["status"], body, replayed=True)


def _owned(tx: AccountReader, key: str) -> str:
    """The key as it is stored: with its user, so that users of an account do not share keys."""
    return f"{to_wire('user', tx.user_id)}:{key}"


def _without_secret(response: BaseModel) -> BaseModel:
    """The response to store. A field called `secret` is shown once and never stored."""
    if "secret" not in type(response).model_fields:
        return response
    return response.model_copy(update={"secret": None})


def seal_context(account_id: UUID, key: str) -> str:
    return f"idempotency_keys/{account_id}/{key}/sealed_body"


async def _claim(tx: AccountTransaction, key: str) -> None:
    """Locks the key until the transaction ends. Fails when another request has it."""
    digest = hashlib.sha256(tx.account_id.bytes + _owned(tx, key).encode()).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    if not await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", number):
        raise RequestInProgress


def _fingerprint(operation: str, body: BaseModel | None) -> bytes:
    text = body.model_dump_json() if body is not None else ""
    return hashlib.sha256(f"{operation}\n{text}".encode()).digest()


def _encode(response: BaseModel) -> bytes:
    return response.model_dump_json(by_alias=True).encode()
