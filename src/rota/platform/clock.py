"""Time: always UTC, with milliseconds and `Z` on the wire."""

import calendar
import random
from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def about(seconds: float) -> float:
    """Within a fifth of it, so that processes do not all do the same thing at the same moment."""
    return seconds * random.uniform(0.8, 1.2)  # noqa: S311


def to_wire(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def months_after(anchor: datetime, months: int) -> datetime:
    """The same day and time some months later, or the last day of a month that is too short."""
    year, month = divmod(anchor.year * 12 + anchor.month - 1 + months, 12)
    day = min(anchor.day, calendar.monthrange(year, month + 1)[1])
    return anchor.replace(year=year, month=month + 1, day=day)
