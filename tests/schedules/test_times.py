"""The times of schedules, across changes of daylight saving time in both directions."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.schedules import times

DAY = timedelta(days=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(zone: str, cron: str, first: str, days: int = 1) -> list[str]:
    """The local times of a schedule on some days, each with its offset."""
    tz = ZoneInfo(zone)
    start = datetime.fromisoformat(first).replace(tzinfo=tz)
    end = (start.replace(tzinfo=None) + days * DAY).replace(tzinfo=tz)
    found: list[str] = []
    for moment in times.after(cron, zone, start - timedelta(seconds=1)):
        if moment >= end:
            return found
        found.append(moment.astimezone(tz).strftime("%d. %H:%M %z"))
    return found


# A local time that clocks skip, with the next one that exists, and a local time that they repeat,
# with its first offset.
CHANGES = [
    ("Europe/Berlin", "2026-03-29", "30 2", "29. 03:00 +0200", "2026-10-25", "30 2", "+0200"),
    ("America/New_York", "2026-03-08", "30 2", "08. 03:00 -0400", "2026-11-01", "30 1", "-0400"),
    # Half an hour.
    ("Australia/Lord_Howe", "2026-10-04", "10 2", "04. 02:30 +1100", "2026-04-05", "45 1", "+1100"),
    # At midnight.
    ("America/Santiago", "2026-09-06", "20 0", "06. 01:00 -0300", "2026-04-04", "30 23", "-0300"),
    ("Africa/Cairo", "2026-04-24", "0 0", "24. 01:00 +0300", "2026-10-29", "15 23", "+0300"),
    # South of the equator.
    ("Pacific/Auckland", "2026-09-27", "30 2", "27. 03:00 +1300", "2026-04-05", "30 2", "+1300"),
    # Summer time is the standard time.
    ("Europe/Dublin", "2026-03-29", "30 1", "29. 02:00 +0100", "2026-10-25", "30 1", "+0100"),
]


@pytest.mark.parametrize(("zone", "day", "skipped", "runs_at"), [each[:4] for each in CHANGES])
def test_a_skipped_time_runs_at_the_next_minute_that_exists(
    zone: str, day: str, skipped: str, runs_at: str
) -> None:
    assert local(zone, f"{skipped} * * *", day) == [runs_at]
    # On the days around it, it runs as written.
    minute, hour = skipped.split()
    written = f"{int(hour):02}:{int(minute):02}"
    before = (datetime.fromisoformat(day) - DAY).date().isoformat()
    found = [each.split()[1] for each in local(zone, f"{skipped} * * *", before, days=3)]
    assert found == [written, runs_at.split()[1], written]


@pytest.mark.parametrize(("zone", "day", "repeated", "offset"), [(e[0], *e[4:]) for e in CHANGES])
def test_a_repeated_time_runs_once(zone: str, day: str, repeated: str, offset: str) -> None:
    minute, hour = repeated.split()
    [found] = local(zone, f"{repeated} * * *", day)
    assert found.endswith(f"{int(hour):02}:{int(minute):02} {offset}")
    # Also if the schedule is looked at while the time repeats.
    first = times.next_after(f"{repeated} * * *", zone, utc(day) - DAY / 2)
    assert first is not None
    for minutes in (0, 20, 40, 61, 80):
        later = times.next_after(f"{repeated} * * *", zone, first + timedelta(minutes=minutes))
        assert later is not None
        assert later - first > timedelta(hours=20)


def test_several_skipped_times_become_one() -> None:
    assert local("Europe/Berlin", "*/10 2 * * *", "2026-03-29") == ["29. 03:00 +0200"]
    assert len(local("Europe/Berlin", "*/10 2 * * *", "2026-10-25")) == 6
    found = local("Europe/Berlin", "0 2,3 * * *", "2026-03-29")
    assert found == ["29. 03:00 +0200"]


def test_every_hour_means_every_hour() -> None:
    for zone, spring, autumn in (
        ("Europe/Berlin", "2026-03-29", "2026-10-25"),
        ("America/New_York", "2026-03-08", "2026-11-01"),
        ("Australia/Lord_Howe", "2026-10-04", "2026-04-05"),
    ):
        for day, minutes in ((spring, -60), (autumn, 60)):
            if zone == "Australia/Lord_Howe":
                minutes //= 2
            expected = (24 * 60 + minutes) // 5
            assert len(local(zone, "*/5 * * * *", day)) == expected
    assert len(local("Europe/Berlin", "30 * * * *", "2026-03-29")) == 23
    assert len(local("Europe/Berlin", "30 * * * *", "2026-10-25")) == 25


def test_without_daylight_saving_nothing_special_happens() -> None:
    assert local("UTC", "30 2 * * *", "2026-03-29", 2) == ["29. 02:30 +0000", "30. 02:30 +0000"]
    assert local("Asia/Kolkata", "0 9 * * MON", "2026-11-02") == ["02. 09:00 +0530"]


@given(
    zone=st.sampled_from([each[0] for each in CHANGES]),
    cron=st.sampled_from(
        ["*/7 * * * *", "0 9 * * *", "15,45 1-3 * * *", "0 0 1 * *", "0 */2 * * *"]
    ),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1)),
    minutes=st.integers(1, 500_000),
)
def test_the_newest_missed_time_is_the_last_one_before_now(
    zone: str, cron: str, start: datetime, minutes: int
) -> None:
    due = times.next_after(cron, zone, start.replace(tzinfo=UTC))
    assert due is not None
    now = due + timedelta(minutes=minutes)
    newest = times.newest(cron, zone, due, now)
    assert due <= newest <= now
    following = times.next_after(cron, zone, newest)
    assert following is not None
    assert following > now


@pytest.mark.parametrize(
    "cron",
    [
        *("", "* * * *", "0 * * * * *", "60 * * * *", "* 24 * * *", "a * * * *", "*/0 * * * *"),
        *("0 0 30 2 *", "0 0 31 4,6 *", "5-1 * * * *", "@daily", "0 0 * * L", "٣ * * * *"),
        *("* * * * 9", "0 0 LW/3 * 1#9", "-1 * * * *", "* * * * 1/1#2", "0 0 ? * *"),
    ],
)
def test_what_is_no_expression_has_a_problem(cron: str) -> None:
    assert times.problem_of(cron)


@given(st.text("0123456789*/,-LW#MON ?", max_size=30).map(lambda text: f"0 {text} * * 1"))
def test_any_text_is_an_expression_or_has_a_problem(cron: str) -> None:
    if times.problem_of(cron) is None:
        found = times.upcoming(cron, "Europe/Berlin", utc("2026-11-16"), 5)
        assert found == sorted(set(found))
        assert found
