"""Public ids: a prefix that says what it names, and a UUIDv7 in hexadecimal.

The database holds the UUID alone. Ids sort by their time of creation.
"""

from datetime import UTC, datetime
from uuid import UUID

import uuid_utils.compat


def new_uuid() -> UUID:
    return uuid_utils.compat.uuid7()


def time_of(value: UUID) -> datetime:
    """The moment inside a UUIDv7, in milliseconds."""
    return datetime.fromtimestamp((value.int >> 80) / 1000, UTC)


def to_wire(prefix: str, value: UUID) -> str:
    return f"{prefix}_{value.hex}"


def from_wire(prefix: str, text: str) -> UUID | None:
    """The UUID in `text`, or None when it is no id of this kind.

    Only the one spelling that `to_wire` gives is accepted, so that an id has
    exactly one name in URLs, logs and caches.
    """
    head, _, tail = text.rpartition("_")
    if head != prefix or len(tail) != 32 or tail.strip("0123456789abcdef"):
        return None
    return UUID(hex=tail)
