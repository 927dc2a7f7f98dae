"""Schedules for tests, and a clock that tests set."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from rota.platform import clock, ids
from tests.service import Person, Service

WEEKLY: dict[str, Any] = {
    "name": "Weekly checklist",
    "cron": "0 9 * * MON",
    "timeZone": "Europe/Berlin",
    "task": {"name": "Write the checklist"},
}


@dataclass
class Clock:
    now: datetime

    def __call__(self) -> datetime:
        return self.now


async def create(person: Person, **changes: Any) -> dict[str, Any]:
    response = await person.post("/api/schedules", {**WEEKLY, **changes})
    assert response.status_code == 201, response.text
    schedule: dict[str, Any] = response.json()["schedule"]
    return schedule


async def read(person: Person, schedule: dict[str, Any]) -> Any:
    response = await person.get(f"/api/schedules/{schedule['id']}")
    assert response.status_code == 200, response.text
    return response.json()


async def patch(person: Person, schedule: dict[str, Any], **body: Any) -> Any:
    return await person.request("PATCH", f"/api/schedules/{schedule['id']}", json=body)


async def total(person: Person) -> int:
    found: int = (await person.get("/api/tasks")).json()["total"]
    return found


def uuid_of(schedule: dict[str, Any]) -> UUID:
    found = ids.from_wire("sched", schedule["id"])
    assert found is not None
    return found


async def make_due(
    service: Service, schedule: dict[str, Any], ago: timedelta = timedelta(seconds=1)
) -> datetime:
    """Makes a schedule due, as if its time had come."""
    due_at = clock.now() - ago
    async with service.owner() as connection:
        await connection.execute(
            "UPDATE schedules SET next_at = $2, check_at = $2 WHERE id = $1",
            uuid_of(schedule),
            due_at,
        )
    return due_at


async def add_unknown_field(service: Service, schedule: dict[str, Any]) -> None:
    """Changes a schedule's task as a newer version of the service could have stored it."""
    async with service.owner() as connection:
        await connection.execute(
            """
            UPDATE schedules SET task = (task::jsonb || '{"sandbox": true}')::json WHERE id = $1
            """,
            uuid_of(schedule),
        )
