"""API keys: listing, making and revoking them."""

from datetime import datetime
from uuid import UUID

from rota.auth import queries, secrets
from rota.auth.authenticator import Authenticator
from rota.auth.caller import ALL_SCOPES, Caller, Scope
from rota.auth.queries import ApiKey, KeyOwner
from rota.platform import clock
from rota.platform.db import Database
from rota.platform.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed
from rota.platform.ids import new_uuid

MAX_KEYS = 100


class Keys:
    def __init__(self, db: Database, authenticator: Authenticator) -> None:
        self._db = db
        self._authenticator = authenticator

    async def all(self, caller: Caller) -> list[ApiKey]:
        _check_role(caller)
        async with self._db.read(caller.account_id, caller.user_id) as connection:
            return await queries.list_keys(connection, caller.account_id)

    async def create(
        self, caller: Caller, name: str, scopes: list[Scope] | None, expires_at: datetime | None
    ) -> tuple[ApiKey, str]:
        """The key, and its secret, which is known to nobody after this."""
        _check_role(caller)
        if expires_at is not None and expires_at <= clock.now():
            raise ValidationFailed.of(FieldError("expiresAt", "must be in the future"))
        secret = secrets.new_secret()
        key = ApiKey(
            id=new_uuid(),
            name=name,
            prefix=secrets.visible_prefix(secret),
            scopes=[scope for scope in ALL_SCOPES if scopes is None or scope in scopes],
            created_at=clock.now(),
            last_used_at=None,
            expires_at=expires_at,
        )
        owner = KeyOwner(caller.account_id, caller.user_id, key.id)
        async with self._db.write(caller.account_id, caller.user_id) as connection:
            if not await queries.create_key(
                connection, owner, key, secrets.hash_of(secret), MAX_KEYS
            ):
                raise Conflict(f"An account has at most {MAX_KEYS} keys. Delete one first.")
        return key, secret

    async def delete(self, caller: Caller, key_id: UUID | None) -> None:
        _check_role(caller)
        if key_id is None:
            raise NotFound("There is no such API key.")
        async with self._db.write(caller.account_id, caller.user_id) as connection:
            secret_hash = await queries.delete_key(connection, caller.account_id, key_id)
        if secret_hash is None:
            raise NotFound("There is no such API key.")
        self._authenticator.forget_key(secret_hash)


def _check_role(caller: Caller) -> None:
    if caller.role == "member":
        raise Forbidden("Only owners and admins of a company manage its API keys.")
