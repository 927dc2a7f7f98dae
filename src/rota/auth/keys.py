"""Lists, creates and revokes API keys."""

from uuid import UUID

from rota.accounts import queries as accounts
from rota.auth import queries, schemas, secrets
from rota.auth.authenticator import Authenticator
from rota.auth.caller import ALL_SCOPES, DEFAULT_SCOPES, Caller
from rota.auth.errors import ApiKeyNotFound, TooManyKeys
from rota.auth.queries import ApiKey, KeyOwner
from rota.auth.record import Record
from rota.auth.schemas import CreateKey, KeyCreatedResponse
from rota.platform import clock
from rota.platform.db import AccountTransaction, Database
from rota.platform.errors import FieldError, ValidationFailed
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.ids import new_uuid, to_wire

MAX_KEYS = 100


class Keys:
    def __init__(
        self,
        db: Database,
        authenticator: Authenticator,
        idempotency: Idempotency,
        record: Record,
        cell: str | None = None,
    ) -> None:
        self._db = db
        self._authenticator = authenticator
        self._idempotency = idempotency
        self._record = record
        self._cell = cell

    async def all(self, caller: Caller) -> list[ApiKey]:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            return await queries.list_keys(tx)

    async def create(self, caller: Caller, body: CreateKey, idempotency_key: str | None) -> Outcome:
        """Creates a key. Only this response contains its secret."""
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            return await self._idempotency.once(
                tx,
                idempotency_key,
                ("POST /api/keys", body),
                201,
                lambda: self._create(tx, caller, body),
            )

    async def create_now(self, caller: Caller, body: CreateKey) -> KeyCreatedResponse:
        """The same without an idempotency key, for a command of the operator."""
        async with self._db.write(caller.account_id, caller.user_id) as tx:
            return await self._create(tx, caller, body)

    async def _create(
        self, tx: AccountTransaction, caller: Caller, body: CreateKey
    ) -> KeyCreatedResponse:
        if body.expires_at is not None and body.expires_at <= clock.now():
            raise ValidationFailed.of(FieldError("expiresAt", "must be in the future"))
        secret = secrets.new_secret(self._cell)
        key = ApiKey(
            id=new_uuid(),
            name=body.name,
            prefix=secrets.visible_prefix(secret),
            scopes=[s for s in ALL_SCOPES if s in (body.scopes or DEFAULT_SCOPES)],
            created_at=clock.now(),
            last_used_at=None,
            expires_at=body.expires_at,
            user_id=caller.user_id,
            created_by_name=await accounts.own_name(tx),
        )
        owner = KeyOwner(caller.account_id, caller.user_id, key.id)
        if not await queries.create_key(tx, owner, key, secrets.hash_of(secret), MAX_KEYS):
            raise TooManyKeys(MAX_KEYS)
        await self._record_event(tx, "key.created", key.id, caller.user_id)
        return KeyCreatedResponse(key=schemas.ApiKey.of(key), secret=secret)

    async def delete(self, caller: Caller, key_id: UUID | None) -> None:
        if key_id is None:
            raise ApiKeyNotFound
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            secret_hash = await self._delete(tx, key_id, caller.user_id)
        self._authenticator.forget_key(secret_hash)

    async def revoke(self, account_id: UUID, key_id: UUID) -> None:
        """The same for a command of the operator."""
        async with self._db.write(account_id) as tx:
            secret_hash = await self._delete(tx, key_id, None)
        self._authenticator.forget_key(secret_hash)

    async def _delete(self, tx: AccountTransaction, key_id: UUID, by: UUID | None) -> bytes:
        """Returns the hash of the secret, which does not work any more."""
        secret_hash = await queries.delete_key(tx, key_id)
        if secret_hash is None:
            raise ApiKeyNotFound
        await self._record_event(tx, "key.revoked", key_id, by)
        return secret_hash

    async def _record_event(
        self, tx: AccountTransaction, kind: str, key_id: UUID, by: UUID | None
    ) -> None:
        who = None if by is None else to_wire("user", by)
        await self._record(tx, kind, {"keyId": to_wire("key", key_id), "by": who})
