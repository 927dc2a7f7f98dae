"""One page of a list, by its number."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.sdk.test_retries import TASK, Stub


def numbered(request: httpx.Request) -> httpx.Response:
    """A list of 45 tasks."""
    first, size = (int(request.url.params[name]) for name in ("offset", "limit"))
    tasks = [TASK["task"] | {"id": f"task_{number}"} for number in range(45)]
    return httpx.Response(200, json={"tasks": tasks[first : first + size], "total": 45})


@pytest.mark.parametrize(
    ("number", "first", "count"), [(1, "task_0", 20), (3, "task_40", 5), (4, None, 0)]
)
async def test_a_page_is_read_by_its_number(
    kind: str, number: int, first: str | None, count: int
) -> None:
    client = Stub().client(kind, numbered)
    page = await client(lambda c: c.tasks.list(page_size=20).page(number))
    assert [each.id for each in page.items[:1]] == ([first] if first else [])
    assert (len(page.items), page.total) == (count, 45)


async def test_a_list_with_numbered_pages_asks_for_that_page(kind: str) -> None:
    empty = {"agents": [], "total": 0, "page": 7, "limit": 20, "departments": []}
    stub = Stub(httpx.Response(200, json=empty))
    await stub.client(kind)(lambda c: c.agents.list().page(7))
    assert stub.requests[0].url.params["page"] == "7"


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda c: c.tasks.list(page_size=20).page(0), "The first page is 1"),
        (lambda c: c.tasks.list().page(2), "Pass page_size"),
        (lambda c: c.keys.list().page(2), "one page"),
        (lambda c: c.events.list(page_size=20).page(2), "Pass after"),
    ],
)
async def test_a_page_that_a_list_does_not_have_is_refused(
    kind: str, read: Callable[[Any], Any], says: str
) -> None:
    stub = Stub()
    with pytest.raises(ValueError, match=says):
        await stub.client(kind)(read)
    assert stub.requests == []
