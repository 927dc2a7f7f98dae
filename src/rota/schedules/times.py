"""The times of a cron expression in a time zone.

A schedule with fixed hours follows the local clock. A local time that daylight saving skips happens
at the next minute that exists, and one that it repeats happens once. A schedule for every hour (*)
follows the time that passes, so it keeps its distance when clocks change.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

_MINUTE = timedelta(minutes=1)
# How far back to look for the newest of many missed times. Frequent ones are found in the first.
_WINDOWS = (timedelta(hours=2), timedelta(days=2), timedelta(days=64), timedelta(days=800))


@lru_cache(maxsize=1)
def zones() -> frozenset[str]:
    return frozenset(available_timezones())


def problem_of(cron: str) -> str | None:
    """What is wrong with an expression."""
    if len(cron.split()) != 5:
        return "must have five fields: minute, hour, day of month, month and day of week"
    try:
        if next(CronSim(cron, datetime(2000, 1, 1)), None) is None:
            return "describes no time in the next 50 years"
    except (CronSimError, AssertionError) as error:
        return f"is not a cron expression: {error}" if str(error) else "is not a cron expression"
    return None


def after(cron: str, zone: str, moment: datetime) -> Iterator[datetime]:
    """The times after a moment, in order and in UTC."""
    tz, last = ZoneInfo(zone), moment
    local = moment.astimezone(tz)
    if cron.split()[1] == "*":
        found = (each.astimezone(UTC) for each in CronSim(cron, local))
    else:
        found = (_instant(each, tz) for each in CronSim(cron, local.replace(tzinfo=None)))
    for each in found:
        # Local times can repeat, and several skipped ones can become the same minute.
        if each > last:
            yield each
            last = each


def next_after(cron: str, zone: str, moment: datetime) -> datetime | None:
    return next(after(cron, zone, moment), None)


def upcoming(cron: str, zone: str, moment: datetime, count: int) -> list[datetime]:
    return list(islice(after(cron, zone, moment), count))


def newest(cron: str, zone: str, due: datetime, now: datetime) -> datetime:
    """The newest time from `due` to `now`, for a schedule that missed some."""
    for window in _WINDOWS:
        found = None
        for each in after(cron, zone, max(due - _MINUTE, now - window)):
            if each > now:
                break
            found = each
        if found is not None:
            return found
    return due


def _instant(local: datetime, tz: ZoneInfo) -> datetime:
    """The moment of a local time: the first if it exists twice, or the next minute that exists."""
    while True:
        moment = local.replace(tzinfo=tz).astimezone(UTC)
        if moment.astimezone(tz).replace(tzinfo=None) == local:
            return moment
        local += _MINUTE
