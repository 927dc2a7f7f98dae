"""Tool servers and their tools as the rest of the code sees them."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import orjson

Transport = Literal["streamable-http", "sse"]
Status = Literal["CONNECTED", "UNREACHABLE", "AUTH_FAILED", "CHANGED"]

# A tool as its server defines it: name, title, description, inputSchema, outputSchema, annotations.
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
    tool_count: int = 0

    def allows(self, tool: str) -> bool:
        return self.allowed_tools is None or tool in self.allowed_tools

    @property
    def seal_context(self) -> str:
        return seal_context(self.account_id, self.id)


def seal_context(account_id: UUID, server_id: UUID) -> str:
    return f"mcp_servers/{account_id}/{server_id}/sealed_headers"


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as it was accepted, and as the server last told of it.

    Hashes decide what is equal: to Python, 1 and true are.
    """

    name: str
    accepted: Definition | None
    accepted_hash: str | None
    live: Definition | None
    live_hash: str | None

    @property
    def usable(self) -> bool:
        return self.accepted_hash is not None and self.accepted_hash == self.live_hash

    @property
    def waits(self) -> bool:
        """Whether a person has to accept it before it is used."""
        return self.live_hash is not None and self.accepted_hash != self.live_hash

    @property
    def changed(self) -> bool:
        return self.waits and self.accepted_hash is not None

    @property
    def difference(self) -> list[dict[str, Any]]:
        """Each field that is not as it was accepted; all of them for a tool that is new."""
        if self.live is None or not self.waits:
            return []
        before: Definition = self.accepted or {}
        return [
            {"field": field, "accepted": before.get(field), "live": self.live.get(field)}
            for field in FIELDS
            if self.accepted is None or _raw(before.get(field)) != _raw(self.live.get(field))
        ]


def reads_only(definition: Definition) -> bool:
    """A hint of the server's own. Only a plain yes counts."""
    annotations = definition.get("annotations") or {}
    return annotations.get("readOnlyHint") is True and not annotations.get("destructiveHint")


def hash_of(definition: Definition) -> str:
    return hashlib.sha256(_raw(definition)).hexdigest()


def _raw(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def in_words(difference: list[dict[str, Any]]) -> str:
    """A difference for people to read, cut where it gets long."""
    parts = [
        f"{item['field']} was {_short(item['accepted'])} and is {_short(item['live'])}"
        for item in difference
    ]
    return "; ".join(parts)[:4_000]


def _short(value: Any) -> str:
    text = _raw(value).decode()
    return text if len(text) <= 600 else text[:600] + "…"
