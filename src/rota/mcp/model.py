"""Tool servers and their tools."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from rota.platform import json

Transport = Literal["streamable-http", "sse"]
Status = Literal["CONNECTED", "UNREACHABLE", "AUTH_FAILED", "CHANGED"]

# A tool definition as the server sends it: the name and the fields in FIELDS.
Definition = dict[str, Any]
FIELDS = ("title", "description", "inputSchema", "outputSchema", "annotations")


@dataclass(frozen=True, slots=True)
class Server:
    account_id: UUID
    id: UUID
    name: str
    url: str
    transport: Transport
    status: Status
    allowed_tools: list[str] | None
    sealed_headers: bytes | None
    last_error: str | None
    last_checked_at: datetime
    created_at: datetime
    updated_at: datetime
    # Increases with every change of URL, transport or credentials.
    revision: int = 1
    # Everyone who connected, moved or renamed it, or changed its credentials.
    shaped_by: Sequence[UUID] = ()
    tool_count: int = 0
    # The allowed tools that the server does not offer.
    missing_tools: Sequence[str] = ()

    def allows(self, tool: str) -> bool:
        return self.allowed_tools is None or tool in self.allowed_tools

    @property
    def session_key(self) -> tuple[UUID, int]:
        return self.id, self.revision

    @property
    def seal_context(self) -> str:
        return seal_context(self.account_id, self.id)


def seal_context(account_id: UUID, server_id: UUID) -> str:
    return f"mcp_servers/{account_id}/{server_id}/sealed_headers"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Who accepted the definition of a tool, with which credential, and when."""

    user_id: UUID
    name: str | None
    # None for a session.
    key_id: UUID | None
    at: datetime


@dataclass(frozen=True, slots=True)
class AcceptedDefinition:
    """The hash of the accepted definition of a tool, and who accepted it, if that is known."""

    hash: str
    acceptance: Acceptance | None
    # Everyone who shaped the server.
    shaped_by: Sequence[UUID] = ()

    @property
    def shapers(self) -> frozenset[UUID]:
        return shapers_of(self.acceptance, self.shaped_by)


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool with its accepted definition and the last definition that the server sent.

    Definitions are compared by hash, because Python treats 1 and True as equal.
    """

    name: str
    accepted: Definition | None
    accepted_hash: str | None
    live: Definition | None
    live_hash: str | None
    # None if the tool was never accepted, or before acceptances were recorded.
    acceptance: Acceptance | None = None

    @property
    def usable(self) -> bool:
        return self.accepted_hash is not None and self.accepted_hash == self.live_hash

    @property
    def needs_acceptance(self) -> bool:
        """Whether a person has to accept the tool before it can be used."""
        return self.live_hash is not None and self.accepted_hash != self.live_hash

    @property
    def changed(self) -> bool:
        return self.needs_acceptance and self.accepted_hash is not None

    @property
    def difference(self) -> list[dict[str, Any]]:
        """The fields that differ from the accepted definition. For a new tool, all fields."""
        if self.live is None or not self.needs_acceptance:
            return []
        before: Definition = self.accepted or {}
        after = self.live
        return [
            {"field": field, "accepted": before.get(field), "live": after.get(field)}
            for field in FIELDS
            if self.accepted is None
            or _canonical_json(before.get(field)) != _canonical_json(after.get(field))
        ]


def shapers_of(acceptance: Acceptance | None, shaped_by: Sequence[UUID]) -> frozenset[UUID]:
    """Who decided what a call of a tool does: who accepted its definition, or shaped its server."""
    return frozenset(shaped_by) | ({acceptance.user_id} if acceptance else frozenset())


def is_read_only(definition: Definition) -> bool:
    """Whether the server marks the tool as read-only. Anything but `true` counts as writing."""
    annotations = definition.get("annotations") or {}
    return annotations.get("readOnlyHint") is True and not annotations.get("destructiveHint")


def definition_hash(definition: Definition) -> str:
    return hashlib.sha256(_canonical_json(definition)).hexdigest()


@dataclass(frozen=True, slots=True)
class ListedDefinition:
    """The definition of a tool as its server has listed it."""

    # It needs a fraction of the memory of its objects.
    json: bytes
    hash: str

    @classmethod
    def of(cls, raw: bytes) -> "ListedDefinition":
        return cls(raw, definition_hash(json.exact(raw)))

    @property
    def definition(self) -> Definition:
        found: Definition = json.exact(self.json)
        return found


def _canonical_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True)


def describe_difference(difference: list[dict[str, Any]]) -> str:
    """Describes a difference in one readable sentence. Long values are truncated."""
    parts = [
        f"{item['field']} was {_shortened(item['accepted'])} and is {_shortened(item['live'])}"
        for item in difference
    ]
    return "; ".join(parts)[:4_000]


def _shortened(value: Any) -> str:
    text = _canonical_json(value).decode()
    return text if len(text) <= 600 else text[:600] + "…"
