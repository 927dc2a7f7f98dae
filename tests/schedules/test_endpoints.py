"""What clients do with schedules."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from rota.platform import clock
from rota.schedules import times
from rota.schedules.bodies import CreateSchedule
from rota.schedules.service import MAX_SCHEDULES
from tests.schedules.world import WEEKLY, add_unknown_field, create, patch, read
from tests.service import Service
from tests.tasks.world import AGENT, LOCKED_AGENT, newcomer, newcomers

UNUSABLE = {"type": "object", "properties": {"n": {"type": "whole"}}}


async def test_a_schedule_is_created_read_changed_and_deleted(board: Service) -> None:
    person = await newcomer(board)
    schedule = await create(person)
    expected = clock.to_wire(times.upcoming("0 9 * * MON", "Europe/Berlin", clock.now(), 1)[0])
    assert schedule["nextAt"] == expected
    assert schedule["overlap"] == "skip"
    assert schedule["task"]["name"] == "Write the checklist"
    assert schedule["lastOutcome"] is schedule["lastError"] is None
    details = await read(person, schedule)
    assert details["schedule"] == schedule
    assert details["nextTimes"][0] == expected
    assert len(details["nextTimes"]) == 5
    assert details["lastTasks"] == []

    # An object that was read can be sent back.
    assert (await patch(person, schedule, **schedule)).json()["schedule"] == schedule
    changed = (await patch(person, schedule, cron="0 10 * * *", overlap="queue")).json()["schedule"]
    assert changed["overlap"] == "queue"
    assert changed["nextAt"] != expected
    named = (await patch(person, schedule, name="Daily", task={"name": "Other"})).json()["schedule"]
    assert (named["name"], named["task"]["name"]) == ("Daily", "Other")
    assert named["nextAt"] == changed["nextAt"]

    listed = (await person.get("/api/schedules")).json()
    assert listed == {"schedules": [named], "total": 1, "truncated": False}
    gone = await person.delete(f"/api/schedules/{schedule['id']}")
    assert gone.json() == {"deleted": True, "id": schedule["id"]}
    for method, path in (("GET", ""), ("DELETE", ""), ("PATCH", ""), ("POST", "/run")):
        body = {"name": "x"} if method == "PATCH" else None
        path = f"/api/schedules/{schedule['id']}{path}"
        assert (await person.request(method, path, json=body)).status_code == 404
    kinds = [e["type"] for e in await events(board, person)]
    assert kinds == [
        *("schedule.created", "schedule.updated", "schedule.updated", "schedule.deleted")
    ]


async def events(board: Service, person: Any) -> Any:
    response = await person.get("/api/events", headers={"Accept": "application/json"})
    return response.json()["events"]


async def test_a_paused_schedule_has_no_next_time(board: Service) -> None:
    person = await newcomer(board)
    schedule = await create(person, paused=True)
    assert schedule["nextAt"] is None
    assert (await read(person, schedule))["nextTimes"] == []
    resumed = (await patch(person, schedule, paused=False)).json()["schedule"]
    assert datetime.fromisoformat(resumed["nextAt"]) > clock.now()
    paused = (await patch(person, schedule, paused=True)).json()["schedule"]
    assert (paused["paused"], paused["nextAt"]) == (True, None)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"cron": "0 9 * *"}, "cron"),
        ({"cron": "99 9 * * *"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"timeZone": "Europe/Atlantis"}, "timeZone"),
        ({"timeZone": "../etc/passwd"}, "timeZone"),
        ({"overlap": "allow"}, "overlap"),
        ({"name": " "}, "name"),
        ({"task": {"name": ""}}, "task.name"),
        ({"task": {"name": "x", "agent": "nobody"}}, "task.agent"),
        ({"task": {"name": "x", "dryRun": True}}, "task.dryRun"),
        ({"task": {"name": "x", "deadline": "2099-01-31T12:00:00Z"}}, "task.deadline"),
        ({"task": {"name": "x", "agent": AGENT, "outputSchema": UNUSABLE}}, "task.outputSchema"),
        ({"pause": True}, "pause"),
    ],
)
async def test_a_schedule_that_is_not_valid_is_refused(
    board: Service, change: dict[str, Any], field: str
) -> None:
    person = await newcomer(board)
    response = await person.post("/api/schedules", {**WEEKLY, **change})
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["field"] == field
    schedule = await create(person)
    assert (await patch(person, schedule, **change)).status_code == 400
    assert (await read(person, schedule))["schedule"] == schedule


async def test_a_locked_agent_is_refused(board: Service) -> None:
    person = await newcomer(board, tier="basic")
    body = {**WEEKLY, "task": {"name": "x", "agent": LOCKED_AGENT}}
    assert (await person.post("/api/schedules", body)).status_code == 403
    schedule = await create(person)
    assert (await patch(person, schedule, task=body["task"])).status_code == 403


async def test_run_now_creates_a_task_and_changes_no_time(board: Service) -> None:
    person = await newcomer(board)
    schedule = await create(person, task={"name": "Work", "agent": AGENT}, paused=True)
    path = f"/api/schedules/{schedule['id']}/run"
    for key in ("k", "k"):
        response = await person.post(path, headers={"Idempotency-Key": key})
        assert response.status_code == 201
    # Also if the earlier task has not ended.
    second = (await person.post(path)).json()["task"]
    assert second["assignedAgent"] == AGENT
    assert (await person.get("/api/tasks")).json()["total"] == 2
    details = await read(person, schedule)
    assert [task["id"] for task in details["lastTasks"]] == [
        second["id"],
        response.json()["task"]["id"],
    ]
    assert details["schedule"] == schedule


async def test_the_last_ten_tasks_are_shown(board: Service) -> None:
    person = await newcomer(board)
    schedule = await create(person)
    ran = [
        (await person.post(f"/api/schedules/{schedule['id']}/run")).json()["task"]["id"]
        for _ in range(12)
    ]
    shown = [task["id"] for task in (await read(person, schedule))["lastTasks"]]
    assert shown == ran[:1:-1]
    assert (await person.delete(f"/api/schedules/{schedule['id']}")).status_code == 200
    assert (await person.get("/api/tasks")).json()["total"] == 12


async def test_scopes_and_accounts_are_separate(board: Service) -> None:
    person = await newcomer(board)
    schedule = await create(person)
    (reader,) = await newcomers(board, scopes=("tasks:read",))
    assert (await reader.post("/api/schedules", WEEKLY)).status_code == 403
    assert (await reader.get("/api/schedules")).json()["total"] == 0
    assert (await reader.get(f"/api/schedules/{schedule['id']}")).status_code == 404


async def test_a_repeated_creation_creates_one_schedule(board: Service) -> None:
    person = await newcomer(board)
    # A body without a field that came later has the fingerprint that it had before.
    first, again, later = [
        await person.post("/api/schedules", body, headers={"Idempotency-Key": "k"})
        for body in (WEEKLY, WEEKLY, WEEKLY | {"truncated": []})
    ]
    assert first.content == again.content == later.content
    assert "truncated" not in CreateSchedule.model_validate(WEEKLY).model_dump_json()
    assert (await person.get("/api/schedules")).json()["total"] == 1


async def test_the_number_of_schedules_is_limited(board: Service) -> None:
    person = await newcomer(board)
    await create(person)
    async with board.owner() as connection:
        await connection.execute(
            """
            INSERT INTO schedules (account_id, id, name, cron, time_zone, task, overlap, paused,
                                   saved_by, created_at, updated_at)
            SELECT $1, gen_random_uuid(), 'x', '0 9 * * *', 'UTC', '{"name": "x"}', 'skip', true,
                   $1, now(), now() FROM generate_series(2, $2)
            """,
            person.user_id,
            MAX_SCHEDULES,
        )
    assert (await person.post("/api/schedules", WEEKLY)).status_code == 409
    page = (await person.get("/api/schedules?limit=2&offset=998")).json()
    assert (page["total"], len(page["schedules"])) == (MAX_SCHEDULES, 2)


async def test_a_large_page_is_cut_and_an_incomplete_task_cannot_be_sent_back(
    board: Service,
) -> None:
    person = await newcomer(board)
    short = await create(person, task={"name": "x", "input": "x" * 10})
    text = "x" * 50_000
    for _ in range(11):
        task = {"name": "x", "input": text, "description": text, "actions": ["a"]}
        schedule = await create(person, task=task)
    assert schedule["truncated"] == []
    page = (await person.get("/api/schedules")).json()
    assert page["truncated"]
    assert {len(each["task"]["input"]) for each in page["schedules"]} == {10, 2_000}
    *cut, whole = page["schedules"]
    assert whole == short
    assert {tuple(each["truncated"]) for each in cut} == {("input", "description", "actions")}
    for refused in (
        await patch(person, schedule, **cut[0]),
        await person.post("/api/schedules", cut[0]),
    ):
        assert refused.status_code == 400
        [problem] = refused.json()["error"]["details"]
        assert problem["field"] == "truncated"
        assert "GET /api/schedules/{id}" in problem["message"]
    assert (await person.post("/api/schedules", whole)).status_code == 201
    # Other changes of a schedule from a list are possible, and so is what was read whole.
    del cut[0]["task"]
    assert (await patch(person, schedule, **{**cut[0], "name": "Other"})).status_code == 200
    whole = (await read(person, schedule))["schedule"]
    assert (len(whole["task"]["input"]), whole["task"]["actions"]) == (50_000, ["a"])
    assert (whole["name"], whole["truncated"]) == ("Other", [])
    assert (await patch(person, schedule, **whole)).json()["schedule"] == whole
    assert timedelta(0) < datetime.fromisoformat(schedule["nextAt"]) - clock.now()


async def test_a_task_that_a_newer_version_stored_can_be_read_and_replaced(board: Service) -> None:
    person = await newcomer(board)
    schedule, other = await create(person), await create(person)
    await add_unknown_field(board, schedule)
    listed = (await person.get("/api/schedules")).json()["schedules"]
    assert listed == [other, schedule]
    assert (await read(person, schedule))["schedule"] == schedule
    refused = await person.post(f"/api/schedules/{schedule['id']}/run")
    assert refused.status_code == 409
    assert "PATCH /api/schedules/{id}" in refused.json()["error"]["message"]
    assert (await patch(person, schedule, task={"name": "Again"})).status_code == 200
    assert (await person.post(f"/api/schedules/{schedule['id']}/run")).status_code == 201


async def test_an_account_that_is_erased_gets_no_schedules(board: Service) -> None:
    person = await newcomer(board)
    paused = await create(person, paused=True)
    # As an erasure that commits while these requests wait for the account.
    async with board.owner() as connection:
        await connection.execute(
            "UPDATE account_heads SET erased = true WHERE account_id = $1", person.user_id
        )
    assert (await person.post("/api/schedules", WEEKLY)).status_code == 403
    assert (await patch(person, paused, paused=False)).status_code == 403
    async with board.owner() as connection:
        active = await connection.fetchval(
            "SELECT count(*) FROM schedules WHERE account_id = $1 AND NOT paused", person.user_id
        )
    assert active == 0
