"""Idempotency keys: a repeated request gets the stored response of the first one.

The key is claimed, the work is done and the response is stored in one transaction, so a crash
leaves all of it or nothing. A key belongs to the user who sent it: another member of the account
can use the same key for another request. A secret in a response, such as a new API key, has the
type `ShownOnce` and is never stored. Stored responses are encrypted, because they contain the texts
of tasks.

Work outside the database, such as a call of a tool, cannot be part of a transaction. Its key is
claimed before the work and gets the response after it. A claim that stays without a response says
that the outcome is unknown, and the work is not done again.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import Header
from pydantic import BaseModel, Field

from rota.platform import clock
from rota.platform.crypto import Vault
from rota.platform.db import NO_USER, AccountReader, AccountTransaction, ReadConnection
from rota.platform.errors import ApiError, Conflict, envelope
from rota.platform.http.schemas import STORED, shared
from rota.platform.ids import to_wire
from rota.platform.transactions import execute_count

IdempotencyKey = Annotated[
    Annotated[str, Field(min_length=1, max_length=255)] | None,
    Header(
        description="A unique value, such as a UUID, that makes the request safe to repeat. For "
        "24 hours, a repeated request with the same key and body gets the first response again. "
        "The same key with a different body returns 409, and `details.reason` is `key_reused`. "
        "While the first request is in progress, it is `in_progress`; if that request was "
        "interrupted, `outcome_unknown`. A secret is not shown again: it is null "
        "in the repeated response.",
        examples=["5f0c7a52-9c0e-4d0b-8a0e-2f7d1f6f2b11"],
        json_schema_extra=shared("IdempotencyKey"),
    ),
]


# `details.reason` tells clients these conflicts apart, and from those about a state.


class IdempotencyKeyReused(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "This Idempotency-Key was used for a different request. Use a new key.",
            details={"reason": "key_reused"},
        )


class RequestInProgress(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "A request with this Idempotency-Key is in progress. Wait for it, then try again.",
            details={"reason": "in_progress"},
        )


class OutcomeUnknown(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The first request with this Idempotency-Key was interrupted, so it is unknown whether "
            "it took effect. Check its effect. To repeat the request, use a new key.",
            details={"reason": "outcome_unknown"},
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The response of a request that can be repeated: its status and its JSON body."""

    status: int
    body: bytes
    # Whether it is the stored response of an earlier request.
    replayed: bool = False

    @classmethod
    def success(cls, status: int, response: BaseModel) -> "Outcome":
        return cls(status, _encode(response))

    @classmethod
    def failure(cls, error: ApiError, path: str) -> "Outcome":
        now = clock.to_wire(clock.now())
        body = envelope(error.message, error.code, error.details, timestamp=now, path=path)
        return cls(error.status, orjson.dumps(body))


# The status of a claim, which no response has.
_CLAIMED = 102


class _Claim(BaseModel):
    """What a key has instead of a response while the work is under way."""

    # After this time, the work has been interrupted.
    ends_at: datetime


# Stores responses, and deletes some that are too old to be replayed.
_STORE = """
    WITH swept AS (
        DELETE FROM idempotency_keys WHERE account_id = $1 AND key IN (
            SELECT key FROM idempotency_keys
            WHERE account_id = $1 AND key <> ALL($2::text[])
              AND created_at <= now() - interval '24 hours'
            LIMIT 10 * cardinality($2) FOR UPDATE SKIP LOCKED
        )
    )
    INSERT INTO idempotency_keys (account_id, key, fingerprint, status, sealed_body)
    SELECT $1, key, $3, $4, sealed_body FROM unnest($2, $5::bytea[]) AS item (key, sealed_body)
    ON CONFLICT (account_id, key) DO UPDATE SET fingerprint = excluded.fingerprint,
        status = excluded.status, sealed_body = excluded.sealed_body, created_at = now()
"""


async def delete_old(tx: AccountTransaction, limit: int) -> int:
    """Deletes keys that are too old to be replayed, also of an account that sends no more."""
    return await execute_count(
        tx,
        """
        DELETE FROM idempotency_keys WHERE account_id = $1 AND key IN (
            SELECT key FROM idempotency_keys
            WHERE account_id = $1 AND created_at <= now() - interval '24 hours'
            LIMIT $2 FOR UPDATE SKIP LOCKED
        )
        """,
        tx.account_id,
        limit,
    )


async def with_old(connection: ReadConnection, account_ids: Sequence[UUID]) -> set[UUID]:
    """Those of the accounts that have keys to delete. Needs a relay's transaction."""
    rows = await connection.fetch(
        """
        SELECT id FROM unnest($1::uuid[]) AS each (id) WHERE EXISTS (
            SELECT FROM idempotency_keys
            WHERE account_id = each.id AND created_at <= now() - interval '24 hours')
        """,
        account_ids,
    )
    return {row["id"] for row in rows}


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
        sealed = self._vault.seal(
            _encode(response, context=STORED), seal_context(tx.account_id, owned)
        )
        await tx.execute(_STORE, tx.account_id, [owned], _fingerprint(*request), status, [sealed])
        return Outcome(status, _encode(response))

    async def stored_items(
        self,
        tx: AccountTransaction,
        key: str | None,
        request: tuple[str, BaseModel],
        numbers: Iterable[int],
        *,
        wait: bool,
    ) -> dict[int, Outcome]:
        """Claims the key of a request with several items. Returns the responses that items have.

        Each item has a key of its own, `key#number`, and is done in one of several transactions.
        With `wait`, another transaction that has claimed the key can finish first.
        """
        if key is None:
            return {}
        await _claim(tx, key, wait=wait)
        owned = {_owned(tx, f"{key}#{number}"): number for number in numbers}
        rows = await tx.fetch(
            """
            SELECT key, fingerprint, status, sealed_body FROM idempotency_keys
            WHERE account_id = $1 AND key = ANY($2) AND created_at > now() - interval '24 hours'
            """,
            tx.account_id,
            list(owned),
        )
        if rows and {row["fingerprint"] for row in rows} != {_fingerprint(*request)}:
            raise IdempotencyKeyReused
        return {owned[row["key"]]: self._opened(tx, row["key"], row) for row in rows}

    async def store_items(
        self,
        tx: AccountTransaction,
        key: str | None,
        request: tuple[str, BaseModel],
        status: int,
        responses: Mapping[int, BaseModel],
    ) -> None:
        """Stores the responses of items, whose key was claimed in this transaction."""
        if key is None or not responses:
            return
        owned = [_owned(tx, f"{key}#{number}") for number in responses]
        sealed = [
            self._vault.seal(_encode(response, context=STORED), seal_context(tx.account_id, each))
            for each, response in zip(owned, responses.values(), strict=True)
        ]
        await tx.execute(_STORE, tx.account_id, owned, _fingerprint(*request), status, sealed)

    async def claim(
        self,
        tx: AccountTransaction,
        key: str,
        request: tuple[str, BaseModel | None],
        takes_s: float,
    ) -> Outcome | None:
        """Claims the key for work that follows the transaction and takes at most `takes_s`.

        Returns the stored response if there is one. Then the work must not be done.
        """

        async def claim() -> _Claim:
            return _Claim(ends_at=clock.now() + timedelta(seconds=takes_s))

        found = await self.once(tx, key, request, _CLAIMED, claim)
        if not found.replayed:
            return None
        if found.status != _CLAIMED:
            return found
        under_way = clock.now() < _Claim.model_validate_json(found.body).ends_at
        raise RequestInProgress if under_way else OutcomeUnknown

    async def complete(self, tx: AccountTransaction, key: str, outcome: Outcome) -> None:
        """Stores the response of the work that a key was claimed for.

        It is stored as it was sent, so it must not have a `ShownOnce`.
        """
        owned = _owned(tx, key)
        await tx.execute(
            """
            UPDATE idempotency_keys SET status = $3, sealed_body = $4
            WHERE account_id = $1 AND key = $2
            """,
            tx.account_id,
            owned,
            outcome.status,
            self._vault.seal(outcome.body, seal_context(tx.account_id, owned)),
        )

    async def release(self, tx: AccountTransaction, key: str) -> None:
        """Gives a claimed key back, because the work has certainly not begun."""
        await tx.execute(
            "DELETE FROM idempotency_keys WHERE account_id = $1 AND key = $2",
            tx.account_id,
            _owned(tx, key),
        )

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
        return self._opened(tx, owned, row)

    def _opened(self, tx: AccountReader, owned: str, row: Any) -> Outcome:
        body = self._vault.open(row["sealed_body"], seal_context(tx.account_id, owned))
        return Outcome(row["status"], body, replayed=True)


def _owned(tx: AccountReader, key: str) -> str:
    """The key as it is stored: with its user, so that users of an account do not share keys."""
    assert tx.user_id != NO_USER
    return f"{to_wire('user', tx.user_id)}:{key}"


def seal_context(account_id: UUID, key: str) -> str:
    return f"idempotency_keys/{account_id}/{key}/sealed_body"


async def _claim(tx: AccountTransaction, key: str, *, wait: bool = False) -> None:
    """Locks the key until the transaction ends. Without `wait`, fails if another request has it."""
    digest = hashlib.sha256(tx.account_id.bytes + _owned(tx, key).encode()).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    if wait:
        await tx.execute("SELECT pg_advisory_xact_lock($1)", number)
    elif not await tx.fetchval("SELECT pg_try_advisory_xact_lock($1)", number):
        raise RequestInProgress


def _fingerprint(operation: str, body: BaseModel | None) -> bytes:
    text = body.model_dump_json() if body is not None else ""
    return hashlib.sha256(f"{operation}\n{text}".encode()).digest()


def _encode(response: BaseModel, context: str | None = None) -> bytes:
    return response.model_dump_json(by_alias=True, context=context).encode()
