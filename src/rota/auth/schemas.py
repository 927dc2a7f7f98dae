"""Wire shapes of sessions, API keys and the caller's own view."""

from typing import Annotated

from pydantic import Field

from rota.accounts import model
from rota.accounts.model import Kind, Role
from rota.auth import queries
from rota.auth.caller import Scope
from rota.platform import ids
from rota.platform.http.schemas import Body, BodyTimestamp, Timestamp, Wire


class StartSession(Body):
    id_token: Annotated[str, Field(min_length=1)]


class TokenResponse(Wire):
    token: str


class LogoutResponse(Wire):
    logged_out: bool


class User(Wire):
    id: str
    email: str | None
    name: str | None
    created_at: Timestamp

    @classmethod
    def of(cls, user: model.User) -> "User":
        return cls(
            id=ids.to_wire("user", user.id),
            email=user.email,
            name=user.name,
            created_at=user.created_at,
        )


class Account(Wire):
    id: str
    kind: Kind
    name: str
    tier: str
    role: Role
    trial_ends_at: Timestamp | None
    created_at: Timestamp

    @classmethod
    def of(cls, account: model.Account) -> "Account":
        return cls(
            id=ids.to_wire("acct", account.id),
            kind=account.kind,
            name=account.name,
            tier=account.tier.upper(),
            role=account.role,
            trial_ends_at=account.trial_ends_at,
            created_at=account.created_at,
        )


class MeResponse(Wire):
    user: User
    account: Account
    accounts: list[Account]
    effective_tier: str
    user_tier: str
    variant: str


class Issuer(Wire):
    issuer: str
    client_id: str
    name: str


class AuthConfigResponse(Wire):
    variant: str
    issuers: list[Issuer]


class CreateKey(Body):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1)] | None = None
    expires_at: BodyTimestamp | None = None


class ApiKey(Wire):
    id: str
    name: str
    prefix: str
    scopes: list[str]
    created_at: Timestamp
    last_used_at: Timestamp | None
    expires_at: Timestamp | None

    @classmethod
    def of(cls, key: queries.ApiKey) -> "ApiKey":
        return cls(
            id=ids.to_wire("key", key.id),
            name=key.name,
            prefix=key.prefix,
            scopes=key.scopes,
            created_at=key.created_at,
            last_used_at=key.last_used_at,
            expires_at=key.expires_at,
        )


class KeysResponse(Wire):
    keys: list[ApiKey]
    total: int


class KeyCreatedResponse(Wire):
    key: ApiKey
    secret: str


class DeletedResponse(Wire):
    deleted: bool = True
    id: str
