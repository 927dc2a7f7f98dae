"""Audit entries: who did what to which resource.

A transaction collects its entries, and the statement that commits it appends them to the chain of
their account. The hash of an entry covers the hash of the entry before it, so no entry can be
changed, removed, inserted or moved without a trace.

The hash covers IDs and a commitment to everything else: the details, the address, the request ID.
They can be erased together with the salt of the commitment, and the chain can still be verified.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, get_args
from uuid import UUID

from prometheus_client import Counter

from rota.platform import clock, json
from rota.platform.ids import to_wire

ActorKind = Literal["user", "key", "agent", "operator", "service"]
ACTOR_KINDS: tuple[ActorKind, ...] = get_args(ActorKind)

# The chain of what operators do to the installation, and not to one account.
INSTALLATION = UUID(int=0)
# The hash before the first entry.
NO_HASH = bytes(32)
# Events can list many tools, and a committed text is stored twice: here and in the event.
MAX_DETAILS_CHARACTERS = 4_000
_SALT = 16

ENTRIES = Counter("rota_audit_entries_total", "Audit entries, by the kind of the actor.", ["actor"])
_COUNTERS = {kind: ENTRIES.labels(kind) for kind in ACTOR_KINDS}


class Actor(NamedTuple):
    """Who acts. The user of an operator or a service is unknown."""

    kind: ActorKind
    user_id: UUID | None = None
    # The session or the API key, or the task of an agent.
    via: str | None = None
    request_id: str | None = None
    address: str | None = None
    # The operator's command and login.
    name: str | None = None


# Code without an actor is the service's own work: sweeps, relays, webhooks.
_SERVICE = Actor("service")
_actor: ContextVar[Actor] = ContextVar("rota_actor", default=_SERVICE)


def actor() -> Actor:
    return _actor.get()


def act_as(actor: Actor) -> None:
    """From now on, what this task of the event loop does is recorded for this actor."""
    _actor.set(actor)


class Sealed(Protocol):
    """What the hash of an entry covers, apart from its place in the chain."""

    @property
    def account_id(self) -> UUID: ...
    @property
    def at(self) -> datetime: ...
    @property
    def actor(self) -> str: ...
    @property
    def user_id(self) -> UUID | None: ...
    @property
    def via(self) -> str | None: ...
    @property
    def action(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def commitment(self) -> bytes: ...


class Entry(NamedTuple):
    """An entry that has no place in the chain yet."""

    account_id: UUID
    at: datetime
    actor: ActorKind
    user_id: UUID | None
    via: str | None
    action: str
    resource: str
    commitment: bytes
    salt: bytes
    private: str

    @classmethod
    def of(
        cls,
        account_id: UUID,
        user_id: UUID | None,
        action: str,
        resource: str | None,
        details: Mapping[str, Any],
    ) -> "Entry":
        who, now = _actor.get(), clock.now()
        salt, private = os.urandom(_SALT), _private(who, details)
        return cls(
            account_id=account_id,
            # As on the wire, so that an exported entry has all that was hashed.
            at=now.replace(microsecond=now.microsecond // 1000 * 1000),
            actor=who.kind,
            user_id=who.user_id or (user_id if who.kind != "operator" else None),
            via=who.via,
            action=action,
            resource=resource or to_wire("acct", account_id),
            commitment=commitment_of(salt, private),
            salt=salt,
            private=private,
        )


def _private(who: Actor, details: Mapping[str, Any]) -> str:
    shown = {
        "address": who.address,
        "requestId": who.request_id,
        "name": who.name,
        "details": details,
    }
    known = {name: value for name, value in shown.items() if value}
    text = json.dumps(known).decode()
    if len(text) <= MAX_DETAILS_CHARACTERS:
        return text
    digest = hashlib.sha256(json.dumps(details, sort_keys=True)).hexdigest()
    return json.dumps(known | {"details": {"digest": digest}}).decode()


def commitment_of(salt: bytes, private: str) -> bytes:
    return hashlib.sha256(salt + private.encode()).digest()


def canonical(entry: Sealed) -> bytes:
    """The JSON that is hashed: sorted names, no white space."""
    return json.dumps(
        {
            "account": to_wire("acct", entry.account_id),
            "action": entry.action,
            "actor": entry.actor,
            "at": clock.to_wire(entry.at),
            "commitment": entry.commitment.hex(),
            "resource": entry.resource,
            "user": to_wire("user", entry.user_id) if entry.user_id else None,
            "via": entry.via,
        },
        sort_keys=True,
    )


def digest_of(entry: Sealed) -> bytes:
    return hashlib.sha256(canonical(entry)).digest()


def linked(previous: bytes, sequence: int, digest: bytes) -> bytes:
    """The hash of the entry with this digest at this place. The database computes the same."""
    return hashlib.sha256(previous + sequence.to_bytes(8, "big") + digest).digest()


def append_statements(
    entries: Sequence[Entry], bound_to: UUID | None, *, as_arrays: bool = False
) -> str:
    """Statements that append the entries, each with a semicolon. `bound_to` is the account of the
    transaction. `as_arrays` uses the function for several entries in any case.

    They are sent together with COMMIT, in one message, so the head of the chain is locked last and
    as briefly as possible. Such a message has no arguments, so the values are literals.
    """
    statements = ""
    for account_id in dict.fromkeys(entry.account_id for entry in entries):
        if account_id != bound_to:
            statements += f"SET LOCAL rota.account_id = '{account_id}'; "
            bound_to = account_id
        own = [entry for entry in entries if entry.account_id == account_id]
        if as_arrays or len(own) > 1:
            statements += f"SELECT append_audit('{account_id}', {_arrays(own)}); "
        else:
            statements += f"CALL append_audit_entry('{account_id}', {_values(own[0])}); "
    return statements


def _values(entry: Entry) -> str:
    """The entry as arguments of `append_audit_entry`."""
    user = f"'{entry.user_id}'" if entry.user_id else "NULL"
    return (
        f"'{entry.at.isoformat()}', '{entry.actor}', {user}, {_text(entry.via)}, "
        f"{_text(entry.action)}, {_text(entry.resource)}, {_bytes(entry.commitment)}, "
        f"{_bytes(entry.salt)}, {_text(entry.private)}, {_bytes(digest_of(entry))}"
    )


def _text(text: str | None) -> str:
    """A string in SQL, in a form that does not depend on the settings of the server."""
    if text is None:
        return "NULL"
    doubled = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{doubled}'"


def _bytes(data: bytes) -> str:
    return f"E'\\\\x{data.hex()}'"


def _arrays(entries: Sequence[Entry]) -> str:
    """The entries as arguments of `append_audit`: one array for each column."""
    columns: tuple[Iterable[str | None], ...] = (
        [entry.at.isoformat() for entry in entries],
        [entry.actor for entry in entries],
        [str(entry.user_id) if entry.user_id else None for entry in entries],
        [entry.via for entry in entries],
        [entry.action for entry in entries],
        [entry.resource for entry in entries],
        [f"\\x{entry.commitment.hex()}" for entry in entries],
        [f"\\x{entry.salt.hex()}" for entry in entries],
        [entry.private for entry in entries],
        [f"\\x{digest_of(entry).hex()}" for entry in entries],
    )
    return ", ".join(map(_literal, columns))


def _literal(texts: Iterable[str | None]) -> str:
    """An array of strings in SQL.

    It is one constant. `ARRAY['…']` would be an expression, which takes longer to parse.
    """
    items = ["NULL" if text is None else f'"{_escaped(text)}"' for text in texts]
    return _text(f"{{{','.join(items)}}}")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def count(entries: Sequence[Entry]) -> None:
    """Counts entries that were committed."""
    for entry in entries:
        _COUNTERS[entry.actor].inc()
