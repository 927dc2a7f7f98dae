"""The first API key of an account, created by the operator: no session is needed.

A deployment whose users have not signed in has no account yet. So without an account, the key is
for an account of the operator, which belongs to an identity that no identity provider can have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from rota.accounts import queries as accounts
from rota.accounts import service
from rota.accounts.service import AccountNotFound, Profile
from rota.auth.caller import Caller
from rota.auth.keys import Keys
from rota.auth.schemas import CreateKey, KeyCreatedResponse
from rota.platform.db import Database
from rota.platform.errors import Conflict

# The issuers of identity providers are URLs with https.
OPERATOR = Profile("urn:rota:operator", "operator", None, "Operator")


class NoOwner(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The company has no owner, so nobody can be responsible for the key. Add one with: "
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
        body = CreateKey.model_validate(
            {
                "name": name,
                "scopes": list(scopes) if scopes else None,
                "expiresAt": expires_at.isoformat() if expires_at else None,
            }
        )
        return account_id, await self.keys.create_now(caller, body)
