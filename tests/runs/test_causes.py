"""What a run says of calls that failed as often as they may, and what the engine hears of it."""

import asyncio
from typing import Any

import asyncpg
import pytest
from temporalio import exceptions
from temporalio.exceptions import ActivityError, ApplicationError, RetryState
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from rota.runs import activities
from rota.runs.activities import _insist
from rota.runs.budget import Spent, affordable_output_tokens
from rota.runs.discretion import Discretion
from rota.runs.engine import priority_key
from rota.runs.models import GiveUp, Price
from rota.runs.workflow import _cause


def given_up(cause: BaseException) -> ActivityError:
    error = ActivityError(
        "Activity error",
        scheduled_event_id=1,
        started_event_id=2,
        identity="",
        activity_type="think",
        activity_id="1",
        retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED,
    )
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (ApplicationError("x", type="MODEL_UNAVAILABLE"), "MODEL_UNAVAILABLE"),
        (ApplicationError("x", type="TOOL_UNAVAILABLE"), "TOOL_UNAVAILABLE"),
        (ApplicationError("x", type="TOOL_FAILED"), "TOOL_FAILED"),
        (ApplicationError("x", type="KeyError"), "RUN_FAILED"),
        (ApplicationError("x"), "RUN_FAILED"),
        (
            exceptions.TimeoutError(
                "x", type=exceptions.TimeoutType.HEARTBEAT, last_heartbeat_details=[]
            ),
            "RUN_FAILED",
        ),
    ],
)
def test_a_call_given_up_has_a_code_a_message_and_can_be_retried(
    cause: BaseException, code: str
) -> None:
    found, message, retryable = _cause(given_up(cause))
    assert (found, retryable) == (code, True)
    assert message.endswith("Retry the task from failure once that is mended.")


class Failing(ActivityInboundInterceptor):
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        raise self.error


async def heard(error: Exception) -> ApplicationError:
    """What the engine hears of an error in an activity."""
    interceptor = Discretion().intercept_activity(Failing(error))

    async def work() -> Any:
        nothing = ExecuteActivityInput(fn=lambda: None, args=[], executor=None, headers={})
        return await interceptor.execute_activity(nothing)

    with pytest.raises(ApplicationError) as raised:
        await ActivityEnvironment().run(work)
    return raised.value


async def test_the_engine_hears_the_name_of_an_error_and_not_its_words() -> None:
    error = await heard(KeyError("a word of the task"))
    assert (error.message, error.type) == ("An activity failed.", "KeyError")
    assert error.__suppress_context__
    ours = ApplicationError("Made for it.", type="OURS")
    assert await heard(ours) is ours


async def test_what_is_being_written_down_is_written_down_though_the_task_is_cancelled() -> None:
    going, may_end, written = asyncio.Event(), asyncio.Event(), []

    async def work() -> None:
        going.set()
        await may_end.wait()
        written.append("paid")

    insisting = asyncio.create_task(_insist(work))
    await going.wait()
    insisting.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await insisting
    assert written == ["paid"]


async def test_an_outage_of_the_database_is_waited_out_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors: list[Exception] = [
        ConnectionRefusedError(),
        asyncpg.CannotConnectNowError("starting"),
    ]

    async def work() -> str:
        if errors:
            raise errors.pop()
        return "written"

    assert await _insist(work) == "written"

    monkeypatch.setattr(activities, "_INSIST_TIMES", 1)
    errors[:] = [ConnectionRefusedError()] * 9
    with pytest.raises(ConnectionRefusedError):
        await _insist(work)


def test_an_answer_is_never_longer_than_what_is_left_can_pay() -> None:
    price = Price(input_micros=1_000_000, output_micros=2_000_000, version="test")
    spent = [Spent(budget_cents=100, micros=0), Spent(budget_cents=1, micros=9_000)]
    # 1,000 micro-dollars are left above; 300 characters may be 101 tokens.
    assert affordable_output_tokens(spent, price, 300, 8_192) == (1_000 - 101) // 2
    assert affordable_output_tokens(spent[:1], price, 300, 8_192) == 8_192
    with pytest.raises(GiveUp) as raised:
        affordable_output_tokens(spent, price, 2_700, 8_192)
    assert raised.value.code == "BUDGET_EXCEEDED"
    free = Price(0, 0, "free")
    assert affordable_output_tokens([Spent(1, 10_000)], free, 10**6, 400) == 400


def test_priorities_of_tasks_are_the_engines_upside_down() -> None:
    assert [priority_key(p) for p in (0, 1, 2.5, 5, 7.5, 10)] == [5, 5, 4, 3, 2, 1]
