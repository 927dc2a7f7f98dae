"""The same work through REST and through the SDK: the same tasks, events, charges and errors."""

import re
from collections.abc import Callable
from typing import Any

from rota_sdk import errors
from tests.sdk.any_client import AnyClient
from tests.service import Person, Service
from tests.tasks.world import newcomer

Json = dict[str, Any]

ID = re.compile(r"\b([a-z]+)_[0-9a-f]{32}\b")
# Times, and what depends on them or on IDs.
VARYING = re.compile(r"At$|^(timestamp|digest|nextTimes|snapshotHash)$")
NOBODY = "task_01a19b981dc0709986b0d5496f03675a"
RUNNABLE: Json = {"name": "Checklist", "agent": "process-writer", "budgetCents": 7}
BATCH = [{"name": "One", "projectId": "p"}, {"name": "Two", "agent": "nobody"}, {"name": "Three"}]
SCHEDULE: Json = {"name": "Weekly", "cron": "0 9 * * MON", "timeZone": "Europe/Berlin"}
WAITING: Json = {"name": "Send it", "status": "WAITING_APPROVAL"}


async def by_rest(person: Person) -> list[Json]:
    """Does the work, and returns the errors."""
    refused: list[Json] = []

    async def send(method: str, path: str, body: Any = None, key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        response = await person.request(method, path, json=body, headers=headers)
        if not response.is_success:
            refused.append({"status": response.status_code, **error_of(response.json()["error"])})
        return response.json()

    task = (await send("POST", "/api/tasks", RUNNABLE, "first"))["task"]
    await send("POST", "/api/tasks", RUNNABLE, "first")
    await send("POST", "/api/tasks", {**RUNNABLE, "name": "Other"}, "first")
    await send("PATCH", f"/api/tasks/{task['id']}", {"priority": 2, "description": None})
    await send("PATCH", f"/api/tasks/{task['id']}", {"status": "CANCELLED"})

    for decide in ("approve", "reject"):
        path = "/api/tasks/" + (await send("POST", "/api/tasks", WAITING))["task"]["id"]
        shown = (await send("GET", f"{path}/review"))["review"]
        await send("PATCH", path, {"name": "Send something else"})
        body = {"review": {"number": shown["number"], "digest": shown["digest"]}}
        await send("POST", f"{path}/{decide}", body)
        shown = (await send("GET", f"{path}/review"))["review"]
        body = {"review": {"number": shown["number"], "digest": shown["digest"]}}
        await send("POST", f"{path}/{decide}", body)

    failed = (await send("POST", "/api/tasks", {"name": "Fails", "status": "FAILED"}))["task"]
    await send("POST", f"/api/tasks/{failed['id']}/retry", {"from": "start"})
    await send("POST", f"/api/tasks/{failed['id']}/retry", {"from": "start"})
    batch = await send("POST", "/api/tasks/batch", {"tasks": BATCH})
    refused += [error_of(each["error"]) for each in batch["results"] if "error" in each]

    schedule = (await send("POST", "/api/schedules", {**SCHEDULE, "task": RUNNABLE}))["schedule"]
    await send("POST", f"/api/schedules/{schedule['id']}/run")
    await send("PATCH", f"/api/schedules/{schedule['id']}", {"paused": True})
    await send("DELETE", f"/api/schedules/{schedule['id']}")
    await send("POST", "/api/schedules", {**SCHEDULE, "cron": "often", "task": RUNNABLE})

    await send("POST", "/api/credits/topup", {"amountCents": 2000})
    await send("POST", "/api/credits/topup", {"amountCents": -5})
    await send("GET", f"/api/tasks/{NOBODY}")
    await send("POST", "/api/tasks", {"name": "T", "agent": "nobody"})
    await send("POST", "/api/tasks", {"name": "T", "priority": 99})
    await send("POST", "/api/keys", {"name": "A key cannot create keys"})
    return refused


async def by_sdk(client: AnyClient) -> list[Json]:
    refused: list[Json] = []

    async def use(method: Callable[[Any], Any]) -> Any:
        try:
            return await client(method)
        except errors.APIError as error:
            refused.append({"status": error.status, **error_of(vars(error))})

    options: Json = {"name": "Checklist", "agent": "process-writer", "budget_cents": 7}
    task = await use(lambda c: c.tasks.create(**options, idempotency_key="first"))
    await use(lambda c: c.tasks.create(**options, idempotency_key="first"))
    other = {**options, "name": "Other"}
    await use(lambda c: c.tasks.create(**other, idempotency_key="first"))
    await use(lambda c: c.tasks.update(task, priority=2, description=None))
    await use(lambda c: c.tasks.cancel(task))

    async def decide(method: str) -> None:
        sent = await use(lambda c: c.tasks.create(**WAITING))
        stale = await use(lambda c: c.tasks.review(sent))
        await use(lambda c: c.tasks.update(sent, name="Send something else"))
        await use(lambda c: getattr(c.tasks, method)(sent, review=stale))
        shown = await use(lambda c: c.tasks.review(sent))
        await use(lambda c: getattr(c.tasks, method)(sent, review=shown))

    await decide("approve")
    await decide("reject")

    failed = await use(lambda c: c.tasks.create(name="Fails", status="FAILED"))
    await use(lambda c: c.tasks.retry(failed, from_="start"))
    await use(lambda c: c.tasks.retry(failed, from_="start"))
    batch = await use(lambda c: c.tasks.create_batch(BATCH))
    refused.extend(error_of(vars(each.error)) for each in batch if each.error)

    timing: Json = {"name": "Weekly", "cron": "0 9 * * MON", "time_zone": "Europe/Berlin"}
    schedule = await use(lambda c: c.schedules.create(**timing, task=RUNNABLE))
    await use(lambda c: c.schedules.run(schedule))
    await use(lambda c: c.schedules.update(schedule, paused=True))
    await use(lambda c: c.schedules.delete(schedule))
    often = {**timing, "cron": "often"}
    await use(lambda c: c.schedules.create(**often, task=RUNNABLE))

    await use(lambda c: c.credits.top_up(amount_cents=2000))
    await use(lambda c: c.credits.top_up(amount_cents=-5))
    await use(lambda c: c.tasks.get(NOBODY))
    await use(lambda c: c.tasks.create(name="T", agent="nobody"))
    await use(lambda c: c.tasks.create(name="T", priority=99))
    await use(lambda c: c.keys.create(name="A key cannot create keys"))
    return refused


def error_of(error: Json) -> Json:
    return {name: error.get(name) for name in ("code", "message", "details")}


async def left_behind(person: Person) -> Json:
    """Everything that the account has after the work."""
    lists = {
        "tasks": "/api/tasks?limit=100",
        "transactions": "/api/credits/transactions?limit=100",
        "holds": "/api/credits/holds",
        "schedules": "/api/schedules",
    }
    found = {name: (await person.get(path)).json()[name] for name, path in lists.items()}
    listed = await person.get("/api/events?limit=100", headers={"Accept": "application/json"})
    balance = (await person.get("/api/credits/balance")).json()
    return {"events": listed.json()["events"], **found, "balance": balance}


def comparable(value: Any, ids: dict[str, str]) -> Any:
    """Without times, and with each ID as the kind and number of what it names."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if not VARYING.search(k)}
        return {k: comparable(v, ids) for k, v in kept.items()}
    if isinstance(value, list):
        return [comparable(each, ids) for each in value]
    if isinstance(value, str):
        return ID.sub(lambda i: ids.setdefault(i[0], f"{i[1]} {len(ids)}"), value)
    return value


async def test_the_same_work_leaves_the_same_through_rest_and_the_sdk(
    shop: Service, rota: AnyClient, owner: Person
) -> None:
    person = await newcomer(shop)
    refused, expected = await by_sdk(rota), await by_rest(person)
    assert [each["code"] for each in expected if "status" in each] == [
        *("CONFLICT", "CONFLICT", "CONFLICT", "CONFLICT", "VALIDATION_ERROR", "VALIDATION_ERROR"),
        *("NOT_FOUND", "VALIDATION_ERROR", "VALIDATION_ERROR", "AUTHORIZATION_ERROR"),
    ]
    mine, theirs = await left_behind(owner), await left_behind(person)
    assert len(theirs["events"]) > 20
    # The events come first, so that IDs are numbered in the order in which things happened.
    assert comparable([mine, refused], {}) == comparable([theirs, expected], {})
