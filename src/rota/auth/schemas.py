"""Wire shapes of sessions, API keys and the caller's own view."""

from typing import Annotated

from pydantic import Field

from rota.accounts.model import Account, Kind, Role, User
from rota.auth.caller import Scope
from rota.auth.queries import ApiKey
from rota.platform import ids
from rota.platform.http.schemas import Body, BodyTimestamp, Timestamp, Wire


class StartSession(Body):
    id_token: Annotated[str, Field(min_length=1)]


class TokenAnswer(Wire):
    token: str


class LogoutAnswer(Wire):
    logged_out: bool


class UserShape(Wire):
    id: str
    email: str | None
    name: str | None
    created_at: Timestamp

    @classmethod
    def of(cls, user: User) -> "UserShape":
        return cls(
            id=ids.to_wire("user", user.id),
            email=user.email,
            name=user.name,
            created_at=user.created_at,
        )


class AccountShape(Wire):
    id: str
    kind: Kind
    name: str
    tier: str
    role: Role
    trial_ends_at: Timestamp | None
    created_at: Timestamp

    @classmethod
    def of(cls, account: Account) -> "AccountShape":
        return cls(
            id=ids.to_wire("acct", account.id),
            kind=account.kind,
            name=account.name,
            tier=account.tier.upper(),
            role=account.role,
            trial_ends_at=account.trial_ends_at,
            created_at=account.created_at,
        )


class MeAnswer(Wire):
    user: UserShape
    account: AccountShape
    accounts: list[AccountShape]
    effective_tier: str
    user_tier: str
    variant: str


class IssuerShape(Wire):
    issuer: str
    client_id: str
    name: str


class AuthConfigAnswer(Wire):
    variant: str
    issuers: list[IssuerShape]


class CreateKey(Body):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1)] | None = None
    expires_at: BodyTimestamp | None = None


class KeyShape(Wire):
    id: str
    name: str
    prefix: str
    scopes: list[str]
    created_at: Timestamp
    last_used_at: Timestamp | None
    expires_at: Timestamp | None

    @classmethod
    def of(cls, key: ApiKey) -> "KeyShape":
        return cls(
            id=ids.to_wire("key", key.id),
            name=key.name,
            prefix=key.prefix,
            scopes=key.scopes,
            created_at=key.created_at,
            last_used_at=key.last_used_at,
            expires_at=key.expires_at,
        )


class KeysAnswer(Wire):
    keys: list[KeyShape]
    total: int


class KeyCreatedAnswer(Wire):
    key: KeyShape
    secret: str


class DeletedAnswer(Wire):
    deleted: bool = True
    id: str
