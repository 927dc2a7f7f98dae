"""Code as a user writes it. Type checkers check it in their strictest mode."""

from datetime import UTC, datetime

from rota_sdk import (
    UNSET,
    AsyncRota,
    Event,
    Page,
    Rota,
    StaleReviewError,
    Task,
    TextDelta,
    errors,
    models,
    webhooks,
)


def synchronous(client: Rota) -> list[str]:
    task: Task = client.tasks.create(name="T", agent="process-writer", priority=3)
    names = [each.name for each in client.tasks.list(status=["FAILED", "PENDING"])]
    for event in client.tasks.follow(task):
        if isinstance(event, TextDelta):
            print(event.text, event.step + 1)
        elif isinstance(event, Event):
            print(event.sequence + 1, event.type.upper())
    review: models.Review = client.tasks.review(task.id)
    try:
        client.tasks.approve(task, review=review, decisions=[{"id": "i", "arguments": {}}])
    except StaleReviewError as error:
        print(error.review.number, error.request_id)
    except errors.RateLimitError as error:
        print(error.retry_after_s)
    client.tasks.update(task, deadline=None, description=UNSET, status="CANCELLED")
    results = client.tasks.create_batch([{"name": "A"}, models.BatchTask(name="B")])
    names += [result.task.name for result in results if result.task is not None]
    page: Page[models.Schedule] = client.schedules.list().first_page()
    names += [schedule.task.name for schedule in page.items]
    key = client.keys.create(name="ci", scopes=["tasks:read"], expires_at=datetime.now(UTC))
    if key.secret is not None:
        names.append(key.secret)
    return names


async def asynchronous() -> str:
    async with AsyncRota(base_url="http://localhost:8080", max_retries=3) as client:
        task = await client.tasks.create(name="T")
        async for each in client.tasks.list(q="words", page_size=10):
            print(each.created_at.isoformat())
        async with client.tasks.follow(task.id, after=3) as events:
            async for event in events:
                print(event.type)
        found = await client.with_options(timeout=5).tasks.wait(task, timeout=60)
        return found.output or ""


def receive(body: bytes, headers: dict[str, str]) -> str:
    event = webhooks.verify(body, headers, secret="whsec_AAAA", webhook_id="wh_1")
    return f"{event.account_id}: {event.type}"
