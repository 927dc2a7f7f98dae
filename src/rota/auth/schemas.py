"""Public schemas of API keys and the caller."""

from typing import Annotated, Any, Literal, cast

from pydantic import Field
from typing_extensions import TypeAliasType

from rota.accounts import model
from rota.auth import caller, queries
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import (
    Body,
    BodyTimestamp,
    ShownOnce,
    Timestamp,
    Total,
    Visible,
    Wire,
    doc,
    resource_of,
)

# The values depend on the variant of the deployment. The application sets them.
Tier = TypeAliasType("Tier", Annotated[str, doc("The tier of an account.", "BASIC")])
Variant = TypeAliasType(
    "Variant", Annotated[str, doc("A set of tiers and prices; each deployment has one.")]
)

AccountKind = TypeAliasType(
    "AccountKind",
    Annotated[
        model.Kind,
        doc("`personal`: one for each user. `company`: shared by its members.", "personal"),
    ],
)
Role = TypeAliasType(
    "Role",
    Annotated[
        model.Role,
        doc(
            "What a user can do in an account. Owners and admins also manage members, keys, tool "
            "servers and billing.",
            "owner",
        ),
    ],
)
Scope = TypeAliasType(
    "Scope", Annotated[caller.Scope, doc("Something that an API key can do.", "tasks:read")]
)
CredentialKind = TypeAliasType(
    "CredentialKind",
    Annotated[
        Literal["session", "key", "rule"],
        doc(
            "`session`: the user was signed in. `key`: an API key of the user. `rule`: a standing "
            "rule that the user made.",
            "session",
        ),
    ],
)


class Actor(Wire):
    """A user who did something, and the credential of the request."""

    user_id: Annotated[str, doc("The ID of the user, `user_…`.", examples.USER_ID)]
    name: Annotated[
        str | None, doc("The name of the user at that time. Null if unknown.", "Ada Lovelace")
    ]
    via: Annotated[
        CredentialKind | None,
        doc("The kind of credential. Null if an earlier version did not store it."),
    ]
    key_id: Annotated[
        str | None, doc("The ID of the API key. Null for a session.", None, examples.KEY_ID)
    ]
    rule_id: Annotated[
        str | None,
        doc("The ID of the standing rule. Null for a session and a key.", None, examples.RULE_ID),
    ] = None


_SCOPES = ["tasks:read", "tasks:write", "agents:read"]


class User(Wire):
    """A person who signs in."""

    id: Annotated[str, doc("The ID of the user, `user_…`.", examples.USER_ID)]
    email: Annotated[
        str | None,
        doc("The email address. Null if the identity provider gave none.", "ada@example.com"),
    ]
    name: Annotated[
        str | None,
        doc("The name. Null if the identity provider gave none.", "Ada Example"),
    ]
    created_at: Annotated[Timestamp, doc("When the user first signed in.", examples.SIGNED_UP)]

    @classmethod
    def of(cls, user: model.User) -> "User":
        return cls(
            id=ids.to_wire("user", user.id),
            email=user.email,
            name=user.name,
            created_at=user.created_at,
        )


class Account(Wire):
    """An account, which owns tasks, tool servers, credits and keys."""

    id: Annotated[str, doc("The ID of the account, `acct_…`.", examples.ACCOUNT_ID)]
    kind: Annotated[AccountKind, doc("Whether one user or a company owns it.")]
    name: Annotated[str, doc("The display name.", "Ada Example")]
    tier: Annotated[Tier, doc("The tier of the account.")]
    role: Annotated[Role, doc("The role of the calling user in the account.")]
    approver: Annotated[bool, doc("Whether the calling user can approve.", True)]
    trial_ends_at: Annotated[
        Timestamp | None,
        doc(
            "When the signup trial ends or ended. Null if there was none.",
            None,
            "2026-10-19T08:12:44.108Z",
        ),
    ]
    created_at: Annotated[Timestamp, doc("When the account was created.", examples.SIGNED_UP)]

    @classmethod
    def of(cls, account: model.Account) -> "Account":
        return cls(
            id=ids.to_wire("acct", account.id),
            kind=account.kind,
            name=account.name,
            tier=account.tier.upper(),
            role=account.role,
            approver=account.approver,
            trial_ends_at=account.trial_ends_at,
            created_at=account.created_at,
        )


class MeResponse(Wire):
    """The caller."""

    user: Annotated[User, doc("The user behind the credential.")]
    account: Annotated[Account, doc("The selected account.")]
    accounts: Annotated[
        list[Account],
        doc("Every account that the user belongs to. For an API key, only its account."),
    ]
    effective_tier: Annotated[Tier, doc("The tier of the selected account.")]
    user_tier: Annotated[Tier, doc("The tier of the user's personal account.")]
    variant: Annotated[Variant, doc("The variant of this deployment.")]


class CreateKey(Body):
    """An API key to create."""

    name: Annotated[
        str,
        doc(
            "A display name, 1 to 100 characters.",
            "Nightly report",
            min_length=1,
            max_length=100,
        ),
        Visible,
    ]
    scopes: Annotated[
        Annotated[list[Scope], Field(min_length=1)] | None,
        doc(
            "What the key can do. Default: every scope except `tasks:approve`, `audit:read` "
            "and `webhooks:write`, "
            "which must be named: a key is a program, and an approval is a decision of a person. "
            "The default includes `mcp:write`, with which a program accepts changed tools, and "
            "`mcp:invoke`, with which it calls tools without a review.",
            _SCOPES,
        ),
    ] = None
    expires_at: Annotated[
        BodyTimestamp | None,
        doc(
            "When the key stops working: an ISO 8601 time with an offset, in the future. Default: "
            "never.",
            "2099-01-31T12:00:00Z",
        ),
    ] = None


@resource_of(CreateKey)
class ApiKey(Wire):
    """An API key, without its secret."""

    id: Annotated[str, doc("The ID of the key, `key_…`.", examples.KEY_ID)]
    name: Annotated[str, doc("The display name.", "Nightly report")]
    prefix: Annotated[
        str, doc("The first characters of the secret, to recognize it.", "rota_4fGh1k")
    ]
    scopes: Annotated[list[Scope], doc("What the key can do.", _SCOPES)]
    created_at: Annotated[Timestamp, doc("When the key was created.", examples.KEY_CREATED)]
    last_used_at: Annotated[
        Timestamp | None,
        doc("When the key was last used, to the minute. Null if never.", None, examples.CREATED),
    ]
    expires_at: Annotated[
        Timestamp | None,
        doc("When the key stops working. Null if never.", "2099-01-31T12:00:00.000Z"),
    ]
    created_by: Annotated[Actor, doc("Who created the key.")]

    @classmethod
    def of(cls, key: queries.ApiKey) -> "ApiKey":
        return cls(
            id=ids.to_wire("key", key.id),
            name=key.name,
            prefix=key.prefix,
            scopes=cast(list[caller.Scope], key.scopes),
            created_at=key.created_at,
            last_used_at=key.last_used_at,
            expires_at=key.expires_at,
            # Only a session can create a key.
            created_by=Actor(
                user_id=ids.to_wire("user", key.user_id),
                name=key.created_by_name,
                via="session",
                key_id=None,
            ),
        )


class KeysResponse(Wire):
    """All API keys of the account."""

    keys: Annotated[list[ApiKey], doc("The keys, newest first.")]
    total: Total


class KeyCreatedResponse(Wire):
    """A new API key and its secret."""

    key: Annotated[ApiKey, doc("The key.")]
    secret: Annotated[
        ShownOnce,
        doc(
            "The secret to send as `Authorization: Bearer`. It is shown only once: a repeated "
            "request with the same Idempotency-Key gets null.",
            "rota_4fGh1kQ2mZx8Lw0VtR7sYb3NcPd6JaEu3hT9Kq",
        ),
    ]


class DeletedResponse(Wire):
    """Something was deleted."""

    deleted: Annotated[bool, doc("Always true.", True)] = True
    id: Annotated[str, doc("The ID of the deleted object.", examples.KEY_ID)]


class JsonWebKeySet(Wire):
    """Public keys in the JSON Web Key Set format (RFC 7517)."""

    keys: Annotated[
        list[dict[str, Any]],
        doc(
            "The public keys of session tokens. Choose by `kid`.",
            [
                {
                    "kty": "OKP",
                    "crv": "Ed25519",
                    "alg": "EdDSA",
                    "use": "sig",
                    "kid": "2026-10",
                    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
                }
            ],
        ),
    ]
