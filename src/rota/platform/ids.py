"""Public IDs: a prefix for the kind of object, and a UUIDv7 in hexadecimal.

The database stores only the UUID. IDs sort by creation time.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import uuid_utils.compat

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def new_uuid() -> UUID:
    return uuid_utils.compat.uuid7()


def time_of(value: UUID) -> datetime:
    """The creation time of a UUIDv7, in milliseconds."""
    return datetime.fromtimestamp((value.int >> 80) / 1000, UTC)


def first_from(moment: datetime) -> UUID:
    """The lowest UUIDv7 of a time that is not before `moment`."""
    return _first(-((_EPOCH - moment) // _MILLISECOND))


def first_after(moment: datetime) -> UUID:
    """The lowest UUIDv7 of a time after `moment`."""
    return _first((moment - _EPOCH) // _MILLISECOND + 1)


def _first(milliseconds: int) -> UUID:
    return UUID(int=max(0, milliseconds) << 80)


def to_wire(prefix: str, value: UUID) -> str:
    return f"{prefix}_{value.hex}"


def from_wire(prefix: str, text: str) -> UUID | None:
    """The UUID in `text`, or None if it is not an ID of this kind.

    Only the spelling of `to_wire` is accepted, so an ID has exactly one form in URLs, logs and
    caches.
    """
    head, _, tail = text.rpartition("_")
    if head != prefix or len(tail) != 32 or tail.strip("0123456789abcdef"):
        return None
    return UUID(hex=tail)
