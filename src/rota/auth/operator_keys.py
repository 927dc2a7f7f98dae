"""API keys that the operator creates, lists and revokes: no session is needed.

A deployment whose users have not signed in has no account yet. So without an account, the key is
for an account of the operator, which belongs to an identity that no identity provider can have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from pydantic import ValidationError

from rota.accounts import queries as accounts
from rota.accounts import service
from rota.accounts.service import AccountNotFound, Profile
from rota.auth import queries
from rota.auth.caller import Caller
from rota.auth.errors import ApiKeyNotFound
from rota.auth.keys import Keys
from rota.auth.schemas import ApiKey, CreateKey, KeyCreatedResponse
from rota.platform.db import Database
from rota.platform.errors import Conflict, FieldError, ValidationFailed

# The issuers of identity providers are URLs with https.
OPERATOR = Profile("urn:rota:operator", "operator", None, "Operator")


class NoOwner(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The company has no owner to create the key for. Add one with: "
            "rota admin companies set-member acct_… user_… --role owner"
        )


@dataclass(frozen=True, slots=True)
class OperatorKeys:
    db: Database
    keys: Keys
    signup_trial: timedelta | None

    async def create(
        self,
        name: str,
        scopes: Sequence[str] | None,
        expires_at: datetime | None,
        account_id: UUID | None,
    ) -> tuple[UUID, KeyCreatedResponse]:
        """The account and its key. In a company, the key belongs to its first owner."""
        body = _checked(name, scopes, expires_at)
        if account_id is None:
            async with self.db.directory() as connection:
                tx = await service.sign_in(connection, OPERATOR, None, self.signup_trial)
                account_id = tx.account_id
        async with self.db.read(account_id) as reader:
            account = await accounts.owned_account(reader)
        if account is None:
            raise AccountNotFound(account_id)
        if account.owner_id is None:
            raise NoOwner
        caller = Caller(
            user_id=account.owner_id,
            account_id=account_id,
            account_kind=account.kind,
            role="owner",
            tier=account.tier,
            user_tier=account.tier,
            scopes=None,
            session_id=None,
        )
        return account_id, await self.keys.create_now(caller, body)

    async def all(self, account_id: UUID | None) -> list[ApiKey]:
        """The keys of an account. Without one, those of the operator's account."""
        if account_id is None:
            async with self.db.directory() as connection:
                account_id = await accounts.user_of_identity(
                    connection, OPERATOR.issuer, OPERATOR.subject
                )
            if account_id is None:
                return []
        async with self.db.read(account_id) as reader:
            if await accounts.owned_account(reader) is None:
                raise AccountNotFound(account_id)
            return [ApiKey.of(key) for key in await queries.list_keys(reader)]

    async def revoke(self, key_id: UUID) -> UUID:
        """Revokes a key of any account, and returns the account. Also in a company that has no
        owner, so the event names no user."""
        async with self.db.directory() as connection:
            account_id = await queries.account_of_key(connection, key_id)
        if account_id is None:
            raise ApiKeyNotFound
        await self.keys.revoke(account_id, key_id)
        return account_id


def _checked(name: str, scopes: Sequence[str] | None, expires_at: datetime | None) -> CreateKey:
    try:
        return CreateKey.model_validate(
            {
                "name": name,
                "scopes": list(scopes) if scopes else None,
                "expiresAt": expires_at.isoformat() if expires_at else None,
            }
        )
    except ValidationError as error:
        problems = [
            FieldError(".".join(map(str, problem["loc"])), problem["msg"])
            for problem in error.errors()
        ]
        raise ValidationFailed.of(*problems) from None
