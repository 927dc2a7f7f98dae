"""Which requests are sent again, and that nothing is done twice."""

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from rota_sdk import AsyncRota, Rota, _retries, errors
from rota_sdk._retries import LONGEST_WAIT_S, delay_s
from tests.sdk.any_client import CLIENTS, AnyClient, url_of
from tests.sdk.proxy import CuttingProxy
from tests.sdk.test_contract import DESCRIPTIONS
from tests.service import Person, Service
from tests.tasks.world import newcomer

TASK = DESCRIPTIONS["a"]["components"]["examples"]["TaskResponse"]["value"]
IN_PROGRESS = "A request with this Idempotency-Key is in progress. Wait for it, then try again."


def refusal(status: int, code: str, message: str = "No.", **headers: str) -> httpx.Response:
    body = {"error": {"code": code, "message": message, "timestamp": "…", "path": "/"}}
    return httpx.Response(
        status, json=body, headers={n.replace("_", "-"): v for n, v in headers.items()}
    )


class Stub:
    """Answers with one outcome after the other."""

    def __init__(self, *outcomes: httpx.Response | Exception, redirects: bool = False) -> None:
        self.outcomes = list(outcomes)
        self.redirects = redirects
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        # A response can be read by one client only.
        return httpx.Response(outcome.status_code, headers=outcome.headers, content=outcome.content)

    def client(
        self, kind: str, answer: Callable[..., httpx.Response] | None = None, **options: Any
    ) -> AnyClient:
        options = {"base_url": "http://x", **options}
        given: Any = {
            "transport": httpx.MockTransport(answer or self),
            "follow_redirects": self.redirects,
        }
        if kind == "async":
            return AnyClient(AsyncRota(http_client=httpx.AsyncClient(**given), **options), True)
        return AnyClient(Rota(http_client=httpx.Client(**given), **options), False)


def done(status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=TASK)


CUT = httpx.ReadError("cut")
get: Callable[[Any], Any] = lambda c: c.tasks.get("task_1")  # noqa: E731
create: Callable[[Any], Any] = lambda c: c.tasks.create(name="T")  # noqa: E731


@pytest.mark.parametrize(
    "failure",
    [
        refusal(429, "RATE_LIMIT_EXCEEDED", Retry_After="0"),
        refusal(429, "RATE_LIMITED", RateLimit_Reset="0"),
        refusal(429, "RATE_LIMITED", Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        refusal(408, "REQUEST_TIMEOUT"),
        httpx.Response(408, text="<html>Request timeout</html>"),
        refusal(503, "SERVICE_UNAVAILABLE"),
        refusal(500, "DATABASE_ERROR"),
        httpx.Response(502, text="<html>Bad gateway</html>"),
        httpx.ConnectError("refused"),
        CUT,
    ],
    ids=str,
)
async def test_a_request_that_can_pass_later_is_sent_again(
    failure: httpx.Response | Exception, kind: str
) -> None:
    stub = Stub(failure, done(201))
    task = await stub.client(kind)(create)
    assert task.id == TASK["task"]["id"]
    keys = [request.headers["Idempotency-Key"] for request in stub.requests]
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize(
    ("use", "failure", "raised"),
    [
        (get, refusal(404, "NOT_FOUND"), errors.NotFoundError),
        (create, refusal(409, "CONFLICT"), errors.ConflictError),
        (get, refusal(429, "RATE_LIMITED", Retry_After="3600"), errors.TooManyAtOnceError),
        (
            get,
            refusal(503, "SERVICE_UNAVAILABLE", Retry_After="Fri, 31 Dec 2199 23:59:59 GMT"),
            errors.ServiceUnavailableError,
        ),
        (
            lambda c: c.tool_servers.invoke("mcp_1", tool="send"),
            refusal(502, "TOOL_SERVER_ERROR"),
            errors.ToolServerError,
        ),
        (
            lambda c: c.tool_servers.invoke("mcp_1", tool="send"),
            refusal(504, "TOOL_SERVER_TIMEOUT"),
            errors.ToolServerTimeoutError,
        ),
        # A line would be appended twice, and an ID token works once.
        (lambda c: c.tasks.update("task_1", logs="line\n"), CUT, errors.APIConnectionError),
        (lambda c: c.auth.start_session(id_token="t"), CUT, errors.APIConnectionError),
    ],
    ids=["missing", "conflict", "too long", "too late", "tool", "tool timeout", "logs", "id token"],
)
async def test_a_request_that_cannot_or_must_not_be_repeated_is_sent_once(
    use: Callable[[Any], Any],
    failure: httpx.Response | Exception,
    raised: type[Exception],
    kind: str,
) -> None:
    stub = Stub(failure)
    with pytest.raises(raised):
        await stub.client(kind)(use)
    assert len(stub.requests) == 1


async def test_an_attempt_that_still_runs_is_waited_for(kind: str) -> None:
    busy = [refusal(409, "CONFLICT", IN_PROGRESS) for _ in range(3)]
    stub = Stub(CUT, *busy, done(201))
    await stub.client(kind, max_retries=1)(create)
    assert len(stub.requests) == 5


async def test_the_request_of_an_earlier_process_with_the_same_key_is_waited_for(kind: str) -> None:
    busy = httpx.Response(
        409,
        json={"error": {"code": "CONFLICT", "message": "?", "details": {"reason": "in_progress"}}},
    )
    keyed: Callable[[Any], Any] = lambda c: c.tasks.create(name="T", idempotency_key="k")  # noqa: E731
    stub = Stub(busy, done(201))
    await stub.client(kind)(keyed)
    assert len(stub.requests) == 2
    # A client without retries says at once what it got.
    with pytest.raises(errors.ConflictError) as caught:
        await Stub(busy).client(kind, max_retries=0)(keyed)
    assert (caught.value.reason, caught.value.is_in_progress) == ("in_progress", True)


@pytest.mark.parametrize("timeout", [0.1, httpx.Timeout(None)], ids=["timeout", "no limit"])
async def test_an_attempt_that_took_the_whole_timeout_is_waited_for(
    kind: str, timeout: Any
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if len(stub.requests) == 0:
            time.sleep(0.2)
        return stub(request)

    stub = Stub(httpx.ReadTimeout("late"), refusal(409, "CONFLICT", IN_PROGRESS), done(201))
    await stub.client(kind, answer=answer, timeout=timeout)(create)
    assert len({request.headers["Idempotency-Key"] for request in stub.requests}) == 1
    assert len(stub.requests) == 3


async def test_an_attempt_that_never_ends_is_not_waited_for_forever(kind: str) -> None:
    stub = Stub(CUT, *[refusal(409, "CONFLICT", IN_PROGRESS) for _ in range(9)])
    with pytest.raises(errors.ConflictError):
        await stub.client(kind, timeout=0.01)(create)
    assert len(stub.requests) == 3


async def test_an_attempt_that_still_runs_is_asked_for_less_and_less_often(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    growth: list[int] = []

    def backoff_s(attempt: int) -> float:
        growth.append(attempt)
        return 0.0

    monkeypatch.setattr(f"rota_sdk._{kind}.transport.backoff_s", backoff_s)
    stub = Stub(*[refusal(409, "CONFLICT", IN_PROGRESS) for _ in range(6)], done(201))
    await stub.client(kind)(create)
    assert growth == [0, 1, 2, 3, 3, 3]
    assert _retries.backoff_s(3) <= 4.0


async def test_attempts_end_with_the_last_error(kind: str) -> None:
    stub = Stub(*[refusal(503, "SERVICE_UNAVAILABLE", X_Request_Id=f"r{n}") for n in range(3)])
    with pytest.raises(errors.ServiceUnavailableError) as caught:
        await stub.client(kind)(get)
    assert (caught.value.request_id, len(stub.requests)) == ("r2", 3)
    stub = Stub(CUT)
    with pytest.raises(errors.APIConnectionError):
        await stub.client(kind, max_retries=0)(get)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("outcomes", "was_sent"),
    [
        ((httpx.ConnectError("refused"),), False),
        ((refusal(429, "RATE_LIMITED"), httpx.ConnectError("refused")), False),
        ((CUT, httpx.ConnectError("refused")), True),
        ((httpx.Response(502, text="Bad gateway"), httpx.ConnectError("refused")), True),
        ((httpx.ConnectError("refused"), CUT), True),
    ],
)
async def test_the_error_says_whether_any_attempt_was_sent_and_with_which_key(
    kind: str, outcomes: tuple[httpx.Response | Exception, ...], was_sent: bool
) -> None:
    stub = Stub(*outcomes)
    with pytest.raises(errors.APIConnectionError) as caught:
        await stub.client(kind, max_retries=len(outcomes) - 1)(create)
    assert caught.value.was_sent is was_sent
    assert caught.value.idempotency_key == stub.requests[0].headers["Idempotency-Key"]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("outcomes", "was_sent"),
    [
        ((refusal(404, "NOT_FOUND"),), False),
        ((refusal(429, "RATE_LIMITED"),), False),
        ((refusal(503, "SERVICE_UNAVAILABLE"),), True),
        ((httpx.Response(201, text="<html>"),), True),
        ((refusal(409, "CONFLICT", IN_PROGRESS),), True),
        (
            (
                refusal(409, "CONFLICT", IN_PROGRESS),
                httpx.ConnectError("refused"),
                httpx.ConnectError("refused"),
            ),
            True,
        ),
        ((CUT, refusal(429, "RATE_LIMITED")), True),
    ],
)
async def test_any_error_says_whether_the_request_may_have_taken_effect(
    kind: str, outcomes: tuple[httpx.Response | Exception, ...], was_sent: bool
) -> None:
    with pytest.raises(errors.RotaError) as caught:
        await Stub(*outcomes).client(kind, max_retries=min(1, len(outcomes) - 1))(create)
    assert caught.value.was_sent is was_sent


async def test_every_error_of_a_request_with_a_key_has_it(kind: str) -> None:
    for outcome in (refusal(503, "SERVICE_UNAVAILABLE"), httpx.Response(201, text="<html>")):
        with pytest.raises(errors.RotaError) as caught:
            await Stub(outcome).client(kind, max_retries=0)(
                lambda c: c.tasks.create(name="T", idempotency_key="order-17")
            )
        assert caught.value.idempotency_key == "order-17"
    with pytest.raises(errors.NotFoundError) as missing:
        await Stub(refusal(404, "NOT_FOUND")).client(kind)(get)
    assert missing.value.idempotency_key is None


ENDS: dict[str, tuple[Callable[[Any], Any], httpx.Response]] = {
    "key": (lambda c: c.keys.delete("key_1"), refusal(404, "NOT_FOUND")),
    "session": (lambda c: c.sessions.delete("sess_1"), refusal(404, "NOT_FOUND")),
    "schedule": (lambda c: c.schedules.delete("sched_1"), refusal(404, "NOT_FOUND")),
    "server": (lambda c: c.tool_servers.disconnect("mcp_1"), refusal(404, "NOT_FOUND")),
    "member": (
        lambda c: c.companies.remove_member("acct_1", "user_1"),
        refusal(404, "NOT_FOUND"),
    ),
    "invitation": (
        lambda c: c.companies.delete_invitation("acct_1", "inv_1"),
        refusal(404, "NOT_FOUND"),
    ),
    "logout": (lambda c: c.auth.logout(), refusal(401, "AUTHENTICATION_ERROR")),
}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are sent again without a pause."""
    monkeypatch.setattr(_retries, "backoff_s", lambda *_: 0.0)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("name", ENDS)
async def test_something_that_a_lost_attempt_has_ended_is_no_error(name: str, kind: str) -> None:
    use, gone = ENDS[name]
    for lost in (CUT, httpx.Response(502, text="Bad gateway")):
        stub = Stub(lost, gone)
        assert await stub.client(kind)(use) is None
        assert len(stub.requests) == 2
    # Nothing was ended if no attempt can have reached the service.
    for outcomes in ([gone], [httpx.ConnectError("refused"), gone]):
        with pytest.raises((errors.NotFoundError, errors.AuthenticationError)):
            await Stub(*outcomes).client(kind)(use)


@pytest.mark.usefixtures("at_once")
async def test_a_lost_attempt_does_not_excuse_other_errors(kind: str) -> None:
    with pytest.raises(errors.NotFoundError):
        await Stub(CUT, refusal(404, "NOT_FOUND")).client(kind)(get)
    delete = ENDS["key"][0]
    with pytest.raises(errors.AuthenticationError):
        await Stub(CUT, refusal(401, "AUTHENTICATION_ERROR")).client(kind)(delete)
    # These are not from the service.
    with pytest.raises(errors.NotFoundError):
        await Stub(CUT, httpx.Response(404, text="<html>")).client(kind)(delete)
    with pytest.raises(errors.UnreadableResponseError):
        await Stub(httpx.Response(200, text="<html>")).client(kind)(delete)


async def test_a_redirect_says_where_to(kind: str) -> None:
    stub = Stub(httpx.Response(301, headers={"Location": "https://rota.example.com/api/me"}))
    with pytest.raises(errors.APIError, match=r"redirects to https://rota\.example\.com") as caught:
        await stub.client(kind)(lambda c: c.me())
    assert caught.value.status == 301


async def test_no_redirect_is_followed_whatever_the_http_client_would_do(kind: str) -> None:
    away = httpx.Response(307, headers={"Location": "http://elsewhere/"})
    stub = Stub(away, away, done(), redirects=True)
    client = stub.client(kind, api_key="rota_x")
    with pytest.raises(errors.APIError, match="redirects to"):
        await client(create)
    with pytest.raises(errors.APIError, match="redirects to"):
        await client.all(lambda c: c.tasks.follow("task_1"))
    assert {request.url.host for request in stub.requests} == {"x"}


def test_the_service_says_how_long_to_wait() -> None:
    for asked in (0.0, 12.0, LONGEST_WAIT_S):
        error = errors.RateLimitError("No.", retry_after_s=asked)
        waits = [delay_s(error, 0, is_repeatable=True) for _ in range(200)]
        assert all(wait is not None and asked <= wait <= asked + 0.5 for wait in waits)
        assert len(set(waits)) > 100
    error = errors.RateLimitError("No.", retry_after_s=LONGEST_WAIT_S + 1)
    assert delay_s(error, 0, is_repeatable=True) is None


def test_waits_without_advice_grow_up_to_a_limit() -> None:
    error = errors.ServiceUnavailableError("No.")
    longest = [
        max(delay_s(error, n, is_repeatable=True) or 0 for _ in range(200)) for n in range(9)
    ]
    assert longest[0] <= 0.5 < longest[1] <= 1.0 < longest[2]
    assert longest[-1] <= 8.0


async def test_a_lost_response_does_not_make_a_second_task(
    cut_rota: AnyClient, proxy: CuttingProxy
) -> None:
    proxy.cut_next(200)
    task = await cut_rota(create)
    assert proxy.cuts == 1
    [found] = await cut_rota.all(lambda c: c.tasks.list())
    assert found.id == task.id


async def test_the_same_key_gives_the_same_task_and_another_body_conflicts(
    rota: AnyClient,
) -> None:
    first = await rota(lambda c: c.tasks.create(name="T", idempotency_key="order-17"))
    again = await rota(lambda c: c.tasks.create(name="T", idempotency_key="order-17"))
    assert first.id == again.id
    with pytest.raises(errors.ConflictError) as caught:
        await rota(lambda c: c.tasks.create(name="Other", idempotency_key="order-17"))
    assert (caught.value.reason, caught.value.is_in_progress) == ("key_reused", False)


async def test_a_key_whose_first_request_runs_is_recognised() -> None:
    from rota.platform.idempotency import RequestInProgress

    conflict = RequestInProgress()
    assert errors.ConflictError("?", details=conflict.details).is_in_progress
    # Services of version 0.1 send the message only.
    assert errors.ConflictError(conflict.message).is_in_progress
    assert errors.ConflictError("?", details={"review": {}}).reason is None


async def test_an_account_over_its_limit_is_told_how_long_to_wait(shop: Service) -> None:
    person: Person = await newcomer(shop, tier="basic")
    while (await person.get("/api/me")).status_code == 200:
        pass
    for kind in CLIENTS:
        client = AnyClient.open(kind, url_of(shop), person.token, max_retries=0)
        with pytest.raises(errors.RateLimitError) as caught:
            await client(lambda c: c.me())
        assert caught.value.code == "RATE_LIMIT_EXCEEDED"
        assert caught.value.status == 429
        assert 0 < (caught.value.retry_after_s or 0) <= 60
        await client.close()
