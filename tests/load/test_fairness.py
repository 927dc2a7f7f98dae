"""The short form of fairness.py. tests/events/test_long_queues.py has that of the outbox."""

import pytest

from rota.dev.stack import Stack
from tests.load.fairness import tasks


@pytest.mark.timed
async def test_many_tasks_of_one_account_do_not_delay_another_account(stack: Stack) -> None:
    # Few call slots, so that the worker is busy as if its models were slow.
    found = await tasks(stack, flood=200, few=10, worker_calls=8)
    print(found)
    assert found["share"] <= 0.25, found
