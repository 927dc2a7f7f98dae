"""Tasks through the SDK: created, changed, listed, decided, retried."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota_sdk import StaleReviewError, errors, models
from tests.sdk.any_client import AnyClient


async def test_a_task_is_created_read_changed_and_cancelled(rota: AnyClient) -> None:
    deadline = datetime.now(UTC) + timedelta(hours=1)
    task = await rota(
        lambda c: c.tasks.create(
            name="Weekly checklist",
            agent="process-writer",
            input="Say “hi”.\u2028Then go.",
            priority=5,
            deadline=deadline,
        )
    )
    assert isinstance(task, models.Task)
    assert (task.assigned_agent, task.status, task.priority) == ("process-writer", "PENDING", 5)
    assert task.created_at.tzinfo is not None
    assert task.deadline is not None
    assert abs(task.deadline - deadline) < timedelta(seconds=1)
    changed = await rota(lambda c: c.tasks.update(task, priority=2, deadline=None))
    assert (changed.priority, changed.deadline) == (2, None)
    assert changed.input == "Say “hi”.\u2028Then go."
    assert (await rota(lambda c: c.tasks.cancel(task.id))).status == "CANCELLED"
    assert (await rota(lambda c: c.tasks.get(task))).status == "CANCELLED"


async def test_an_update_keeps_what_is_not_given_and_clears_what_is_none(rota: AnyClient) -> None:
    task = await rota(lambda c: c.tasks.create(name="T", description="Old", project_id="p"))
    changed = await rota(lambda c: c.tasks.update(task, description=None, logs="a line\n"))
    assert (changed.description, changed.project_id, changed.output) == (None, "p", "a line\n")


async def test_a_quote_creates_nothing(rota: AnyClient) -> None:
    quote = await rota(lambda c: c.tasks.quote(name="T", agent="process-writer"))
    assert quote.agent.name == "process-writer"
    assert quote.balance.covered
    assert (await rota(lambda c: c.tasks.list().first_page())).total == 0


async def test_a_batch_has_a_task_or_an_error_for_each_entry(rota: AnyClient) -> None:
    entries: list[Any] = [
        {"name": "One", "projectId": "batch"},
        models.BatchTask(name="Two", agent="nobody"),
        {"name": "Three", "project_id": "batch"},
    ]
    results = await rota(lambda c: c.tasks.create_batch(entries))
    assert [r.task and r.task.name for r in results] == ["One", None, "Three"]
    refused = results[1].error
    assert isinstance(refused, errors.ValidationError)
    assert refused.fields[0].field == "agent"


async def test_a_review_that_was_shown_is_approved(rota: AnyClient) -> None:
    task = await rota(lambda c: c.tasks.create(name="Send it", status="WAITING_APPROVAL"))
    [approval] = await rota.all(lambda c: c.approvals.list())
    assert approval.task.id == task.id
    decided = await rota(lambda c: c.tasks.approve(task, review=approval.review))
    assert decided.task.status == "RUNNING"
    assert decided.review.history[0].state == "approved"
    assert decided.review.history[0].digest == approval.review.digest


async def test_a_review_that_changed_since_it_was_shown_decides_nothing(rota: AnyClient) -> None:
    task = await rota(lambda c: c.tasks.create(name="Send it", status="WAITING_APPROVAL"))
    shown = await rota(lambda c: c.tasks.review(task))
    await rota(lambda c: c.tasks.update(task, name="Send something else"))
    with pytest.raises(StaleReviewError) as caught:
        await rota(lambda c: c.tasks.approve(task, review=shown))
    waiting = caught.value.review
    assert (waiting.number, shown.number) == (2, 1)
    assert (await rota(lambda c: c.tasks.get(task))).status == "WAITING_APPROVAL"
    rejected = await rota(lambda c: c.tasks.reject(task, review=waiting, reason="Not this"))
    assert rejected.task.status == "CANCELLED"


async def test_a_review_with_nothing_to_decide_is_refused_by_the_client(rota: AnyClient) -> None:
    task = await rota(lambda c: c.tasks.create(name="Nothing waits"))
    review = await rota(lambda c: c.tasks.review(task))
    with pytest.raises(ValueError, match="nothing to decide"):
        await rota(lambda c: c.tasks.approve(task, review=review))


async def test_a_failed_task_is_retried(rota: AnyClient) -> None:
    task = await rota(lambda c: c.tasks.create(name="T", status="FAILED"))
    assert (await rota(lambda c: c.tasks.quote_retry(task))).available
    again = await rota(lambda c: c.tasks.retry(task, from_="start"))
    assert (again.status, again.usage.run) == ("PENDING", 2)


async def test_a_list_reads_all_of_its_pages(rota: AnyClient) -> None:
    entries = [{"name": f"Task {n}", "projectId": "pages"} for n in range(25)]
    await rota(lambda c: c.tasks.create_batch(entries))
    found = await rota.all(lambda c: c.tasks.list(project_id="pages", page_size=10))
    assert sorted(int(task.name.split()[1]) for task in found) == list(range(25))
    page = await rota(lambda c: c.tasks.list(status=["PENDING", "FAILED"]).first_page())
    assert page.total == 25
    since = datetime.now(UTC) + timedelta(minutes=1)
    assert await rota.all(lambda c: c.tasks.list(created_after=since)) == []


async def test_a_list_is_complete_if_its_items_leave_it_meanwhile(rota: AnyClient) -> None:
    entries = [{"name": f"Task {n}", "status": "FAILED"} for n in range(25)]
    await rota(lambda c: c.tasks.create_batch(entries))
    seen: list[str] = []

    def retry(task: models.Task) -> Any:
        seen.append(task.id)
        return rota.wrapped.tasks.retry(task)

    await rota.each(lambda c: c.tasks.list(status="FAILED", page_size=4), retry)
    assert len(seen) == len(set(seen)) == 25
    assert await rota.all(lambda c: c.tasks.list(status="FAILED")) == []


async def test_a_list_shows_nothing_twice_if_tasks_are_created_meanwhile(rota: AnyClient) -> None:
    await rota(lambda c: c.tasks.create_batch([{"name": f"Task {n}"} for n in range(9)]))
    seen: list[str] = []

    def create(task: models.Task) -> Any:
        seen.append(task.name)
        return rota.wrapped.tasks.create(name="New") if len(seen) <= 9 else None

    await rota.each(lambda c: c.tasks.list(page_size=3), create)
    assert sorted(name for name in seen if name != "New") == [f"Task {n}" for n in range(9)]


async def test_waiting_returns_the_task_at_its_end(rota: AnyClient) -> None:
    task = await rota(lambda c: c.tasks.create(name="T", status="COMPLETED", output="Done"))
    assert (await rota(lambda c: c.tasks.wait(task))).output == "Done"
    review = await rota(lambda c: c.tasks.create(name="T", status="WAITING_APPROVAL"))
    found = await rota(lambda c: c.tasks.wait(review, until_review=True))
    assert found.status == "WAITING_APPROVAL"
    with pytest.raises(errors.WaitTimeoutError, match="WAITING_APPROVAL"):
        await rota(lambda c: c.tasks.wait(review, timeout=0.1))


async def test_an_id_that_is_empty_never_reaches_the_service(rota: AnyClient) -> None:
    with pytest.raises(ValueError, match="empty"):
        await rota(lambda c: c.tasks.get(""))
