"""The public schemas of the audit trail."""

from typing import Annotated, Any

from typing_extensions import TypeAliasType

from rota.audit.queries import Stored
from rota.audit.service import Page
from rota.platform import json
from rota.platform.audit import ActorKind
from rota.platform.http import examples
from rota.platform.http.schemas import Timestamp, Total, Wire, doc
from rota.platform.ids import to_wire

HASH = "5f9a8f3c0e6d4b2a91c7d85e60f1a2b3c4d5e6f708192a3b4c5d6e7f80912a3b"
JWS = "eyJhbGciOiJFZDI1NTE5In0.eyJzZXF1ZW5jZSI6NDJ9.c2lnbmF0dXJl"

AuditActor = TypeAliasType(
    "AuditActor",
    Annotated[
        ActorKind,
        doc(
            "Who acts: a `user` with a session, an API `key`, an `agent`, an `operator` with a "
            "command, or the `service` itself.",
            "user",
        ),
    ],
)


class AuditEntry(Wire):
    """Who did what to which resource."""

    sequence: Annotated[
        int, doc("The number of the entry in the account, starting at 1, without gaps.", 42)
    ]
    at: Annotated[Timestamp, doc("When it happened.", examples.CREATED)]
    actor: Annotated[AuditActor, doc("Who acted.")]
    user_id: Annotated[
        str | None,
        doc(
            "The user, including the user behind an API key. Null if there is none.",
            examples.USER_ID,
        ),
    ]
    via: Annotated[
        str | None,
        doc(
            "The session, the API key, the access token, or the task of the agent.",
            examples.SESSION_ID,
        ),
    ]
    action: Annotated[
        str,
        doc(
            "What was done: the type of an event, such as `task.approved`, or an action without "
            "one, such as `tool.invoked`. Ignore actions that you do not know.",
            "task.created",
        ),
    ]
    resource: Annotated[str, doc("The ID of what it was done to.", examples.TASK_ID)]
    address: Annotated[str | None, doc("The address of the client.", "203.0.113.7")]
    request_id: Annotated[
        str | None, doc("The X-Request-Id of the request.", "5d0c7a529c0e4d0b8a0e2f7d1f6f2b11")
    ]
    actor_name: Annotated[
        str | None, doc("The command and the login of an operator.", "rota admin by root@host")
    ]
    details: Annotated[
        dict[str, Any],
        doc("More about it; the fields depend on `action`.", {"status": "PENDING"}),
    ]
    erased: Annotated[
        bool,
        doc(
            "Whether `address`, `requestId`, `actorName` and `details` were erased. The chain can "
            "still be verified.",
            False,
        ),
    ]
    hash: Annotated[str, doc("Covers this entry and all before it, in hexadecimal.", HASH)]

    @classmethod
    def of(cls, entry: Stored) -> "AuditEntry":
        private = json.exact(entry.private) if entry.private is not None else {}
        return cls(
            sequence=entry.sequence,
            at=entry.at,
            actor=entry.actor,
            user_id=to_wire("user", entry.user_id) if entry.user_id else None,
            via=entry.via,
            action=entry.action,
            resource=entry.resource,
            address=private.get("address"),
            request_id=private.get("requestId"),
            actor_name=private.get("name"),
            details=private.get("details", {}),
            erased=entry.private is None,
            hash=entry.hash.hex(),
        )


class AuditHead(Wire):
    """The newest entry of the trail. Keep `jws`: it shows later whether the trail was changed."""

    sequence: Annotated[int, doc("The number of the newest entry. 0: there is none.", 42, ge=0)]
    hash: Annotated[str, doc("Its hash, in hexadecimal.", HASH)]
    jws: Annotated[
        str,
        doc("The head with a signature of a key in /.well-known/audit-keys.json.", JWS),
    ]


class AuditResponse(Wire):
    """A page of the audit trail."""

    entries: Annotated[list[AuditEntry], doc("The entries on this page, newest first.")]
    total: Total
    head: Annotated[AuditHead, doc("The newest entry of the whole trail, signed.")]

    @classmethod
    def of(cls, page: Page) -> "AuditResponse":
        head = AuditHead(
            sequence=page.head.sequence, hash=page.head.hash.hex(), jws=page.signed_head
        )
        return cls(
            entries=[AuditEntry.of(entry) for entry in page.entries], total=page.total, head=head
        )


class AuditKey(Wire):
    """A public key, as a JSON web key."""

    kty: Annotated[str, doc("Always `OKP`.", "OKP")]
    crv: Annotated[str, doc("Always `Ed25519`.", "Ed25519")]
    x: Annotated[str, doc("The key.", "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")]
    kid: Annotated[str, doc("Which key signed a document.", "21fe31dfa154a261")]
    use: Annotated[str, doc("Always `sig`.", "sig")]
    alg: Annotated[str, doc("Always `Ed25519`.", "Ed25519")]


class AuditKeysResponse(Wire):
    """The keys that sign heads and receipts, including former keys."""

    keys: Annotated[list[AuditKey], doc("The key that signs now is the first.")]
