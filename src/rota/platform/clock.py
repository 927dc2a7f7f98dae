"""Time: UTC everywhere, milliseconds and `Z` on the wire."""

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def to_wire(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
