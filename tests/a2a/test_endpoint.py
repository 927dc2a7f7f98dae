"""The endpoints: cards, agents, what they refuse, and what they count."""

import subprocess
import sys

import pytest
from a2a.client import A2ACardResolver
from a2a.types import a2a_pb2 as wire
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    InvalidRequestError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
)

from rota.dev.stack import Stack
from tests.a2a.client import (
    SENT,
    Binding,
    connected,
    details,
    message,
    refusal,
    rest,
    rpc,
    state,
    url_of,
)
from tests.assertions import assert_error
from tests.service import Person, Service


async def test_the_public_card_says_how_to_connect_and_names_no_agent(endpoints: Service) -> None:
    cards = []
    for path in ("/.well-known/agent-card.json", "/a2a/.well-known/agent-card.json"):
        answer = await endpoints.http.get(path)
        assert answer.headers["Cache-Control"] == "public, max-age=300"
        again = await endpoints.http.get(path, headers={"If-None-Match": answer.headers["ETag"]})
        assert again.status_code == 304
        cards.append(answer.json())
    assert cards[0] == cards[1]
    card = cards[0]
    url = f"{endpoints.settings.public_url}/a2a"
    assert [
        (each["url"], each["protocolBinding"], each["protocolVersion"])
        for each in card["supportedInterfaces"]
    ] == [(url, "JSONRPC", "1.0"), (url, "HTTP+JSON", "1.0")]
    assert card["capabilities"]["streaming"] is True
    assert card["capabilities"].get("pushNotifications", False) is False
    assert [each["id"] for each in card["skills"]] == ["delegate"]


async def test_the_extended_card_has_the_agents_that_the_account_can_use(
    endpoints: Service, somebody: Person, secret: str, binding: Binding
) -> None:
    async with connected(endpoints, secret, binding) as client:
        skills = {each.id: each for each in (await client.extended_card()).skills}
    agents = (await somebody.get("/api/agents", params={"limit": 100})).json()["agents"]
    assert skills.keys() - {"delegate"} == {each["name"] for each in agents if not each["locked"]}
    assert skills["writer"].name == "Writer"
    assert list(skills["writer"].tags) == ["test"]


async def test_an_agent_has_a_card_and_a_url_of_its_own(
    endpoints: Service, somebody: Person, secret: str, binding: Binding
) -> None:
    async with connected(endpoints, secret, binding, agent="writer") as client:
        assert (client.card.name, client.card.supported_interfaces[0].tenant) == (
            "Writer",
            "writer",
        )
        assert (await client.extended_card()).name == "Writer"
        task = await client.send(message("Hello", approveFirst=True))
        assert details(task)["assignedAgent"] == "writer"
        assert (await client.get(task.id)).id == task.id
        with pytest.raises(InvalidParamsError, match="agent"):
            await client.send(message("Hello", "careful"))
    async with connected(endpoints, secret, binding, agent="careful") as client:
        # The URL of an agent shows the tasks of this agent only.
        assert (await client.list()).total_size == 0
        for attempt in (client.get(task.id), client.cancel(task.id)):
            with pytest.raises(TaskNotFoundError):
                await attempt
        with pytest.raises(TaskNotFoundError):
            [each async for each in client.subscribe(task.id)]
    async with connected(endpoints, secret, binding, agent="writer") as client:
        assert (await client.list()).total_size == 1
        assert state(await client.cancel(task.id)) == "TASK_STATE_CANCELED"
    unknown = await rest(endpoints, secret, "/nobody/.well-known/agent-card.json")
    assert_error(unknown, 404, "NOT_FOUND")
    assert (await rest(endpoints, secret, "/nobody/extendedAgentCard")).status_code == 404


async def test_over_http_the_tenant_can_also_be_a_parameter(
    endpoints: Service, somebody: Person, secret: str
) -> None:
    sent = {"tenant": "writer", "message": {**SENT["message"], "metadata": {}}}
    sent["configuration"] = {"returnImmediately": True}
    sent["metadata"] = {"rota": {"approveFirst": True}}
    answer = await rest(endpoints, secret, "/message:send", sent)
    assert answer.status_code == 200, answer.text
    task = answer.json()["task"]
    assert task["metadata"]["rota"]["assignedAgent"] == "writer"
    for tenant, total, status in (("writer", 1, 200), ("careful", 0, 404)):
        found = await rest(endpoints, secret, f"/tasks?tenant={tenant}")
        assert found.json()["totalSize"] == total
        path = f"/tasks/{task['id']}"
        assert (await rest(endpoints, secret, f"{path}?tenant={tenant}")).status_code == status
    other = await rest(endpoints, secret, f"{path}:cancel", {"tenant": "careful"})
    assert other.status_code == 404
    own = await rest(endpoints, secret, f"{path}:cancel", {"tenant": "writer"})
    assert own.json()["status"]["state"] == "TASK_STATE_CANCELED"


async def test_without_a_name_the_agent_that_fits_the_work_gets_it(
    endpoints: Service, somebody: Person, secret: str, binding: Binding
) -> None:
    async with connected(endpoints, secret, binding) as client:
        text = "Something careful"
        found = (await somebody.get("/api/agents/resolve", params={"q": text})).json()
        task = await client.send(message(text, approveFirst=True))
        assert details(task)["assignedAgent"] == found["agent"]["name"] == "careful"
        with pytest.raises(InvalidParamsError, match="No agent fits"):
            await client.send(message("qwxz"))


async def test_errors_have_the_code_the_status_and_the_request_of_the_rest_api(
    endpoints: Service, somebody: Person, secret: str, binding: Binding
) -> None:
    async with connected(endpoints, secret, binding, headers={"X-Request-Id": "req-17"}) as client:
        with pytest.raises(InvalidParamsError, match="nobody") as error:
            await client.send(message("Hello", "nobody"))
        shown = refusal(error.value)
        assert (shown["code"], shown["status"], shown["requestId"]) == (
            "VALIDATION_ERROR",
            "400",
            "req-17",
        )
        body = {"name": "Hello", "agent": "exclusive", "input": "Hello"}
        rest_error = await somebody.post("/api/tasks", body)
        with pytest.raises(InvalidRequestError) as locked:
            await client.send(message("Hello", "exclusive"))
        shown = refusal(locked.value)
        assert (shown["code"], shown["status"]) == (
            rest_error.json()["error"]["code"],
            str(rest_error.status_code),
        )
        assert str(locked.value) == rest_error.json()["error"]["message"]


async def test_an_account_without_money_is_refused_as_in_the_rest_api(
    endpoints: Service, somebody: Person, secret: str
) -> None:
    body = {"name": "Hello", "agent": "writer", "input": "Hello"}
    await somebody.post("/api/tasks", {**body, "dryRun": True})
    async with endpoints.owner() as connection:
        await connection.execute(
            "UPDATE balances SET allowance = 20000, topup = 0 WHERE account_id = $1",
            somebody.user_id,
        )
    wanted = await somebody.post("/api/tasks", body)
    assert wanted.status_code == 402
    sent = {"message": {**SENT["message"], "metadata": {"rota": {"agent": "writer"}}}}
    answer = await rest(endpoints, secret, "/message:send", sent)
    assert answer.status_code == 402
    error = answer.json()["error"]
    assert (error["code"], error["status"]) == (402, "FAILED_PRECONDITION")
    assert error["message"] == wanted.json()["error"]["message"]
    info = error["details"][0]["metadata"]
    assert info["code"] == wanted.json()["error"]["code"]
    assert info["requestId"] == answer.headers["X-Request-Id"]
    stream = await rest(endpoints, secret, "/message:stream", sent)
    assert stream.status_code == 402
    error = (await rpc(endpoints, secret, "SendMessage", sent)).json()["error"]
    assert error["code"] == -32600
    assert error["data"][0]["metadata"]["code"] == wanted.json()["error"]["code"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"budgetCent": 1}, "budgetCent"),
        ({"budgetCents": 1.5}, "budgetCents"),
        ({"input": "x"}, "metadata.rota.input"),
        ({"projectId": "x"}, "metadata.rota.projectId"),
        ({"outputSchema": {"type": "string"}}, "outputSchema"),
        ("writer", "metadata.rota"),
    ],
)
async def test_wrong_options_are_named(
    endpoints: Service, secret: str, options: object, field: str
) -> None:
    sent = {"message": {**SENT["message"], "metadata": {"rota": options}}}
    error = (await rpc(endpoints, secret, "SendMessage", sent)).json()["error"]
    assert error["code"] == -32602
    violations = error["data"][1]["fieldViolations"]
    assert [each["field"] for each in violations] == [field]
    answer = await rest(endpoints, secret, "/message:send", {"metadata": {"rota": options}, **SENT})
    # The options of the message come before those of the request.
    assert answer.status_code == 200, answer.text


async def test_text_and_data_are_the_input_and_files_are_refused(
    endpoints: Service, somebody: Person, secret: str, binding: Binding
) -> None:
    async with connected(endpoints, secret, binding) as client:
        sent = message("Count these.", "writer", approveFirst=True)
        sent.parts.add().data.struct_value.update({"items": [1, 2.5], "of": "stock"})
        sent.parts.add(text="{}", media_type="application/json")
        sent.parts.add(text="# More", media_type="text/markdown; charset=utf-8")
        task = await client.send(sent)
        shown = (await somebody.get(f"/api/tasks/{task.id}")).json()["task"]
        assert shown["input"] == ('Count these.\n\n{"items":[1,2.5],"of":"stock"}\n\n{}\n\n# More')
        for part in (
            wire.Part(url="https://example.com/a.pdf", media_type="application/pdf"),
            wire.Part(raw=b"abc", media_type="image/png"),
            wire.Part(text="a,b", media_type="application/pdf"),
        ):
            refused = message("Look", "writer")
            refused.parts.append(part)
            with pytest.raises(ContentTypeNotSupportedError):
                await client.send(refused)


async def test_push_notifications_are_refused_and_secrets_not_repeated(
    endpoints: Service, secret: str, binding: Binding
) -> None:
    async with connected(endpoints, secret, binding) as client:
        with pytest.raises(PushNotificationNotSupportedError, match="webhook") as error:
            await client.push_config("task_x", "hush-hush")
        assert "hush-hush" not in repr(error.value)
        push = wire.TaskPushNotificationConfig(url="https://example.com", token="hush-hush")
        configuration = wire.SendMessageConfiguration(task_push_notification_config=push)
        with pytest.raises(PushNotificationNotSupportedError):
            await client.send(message("Hello", "writer"), configuration=configuration)
        assert (await client.list()).total_size == 0
    for method, path in (
        ("GET", "/tasks/task_x/pushNotificationConfigs"),
        ("GET", "/tasks/task_x/pushNotificationConfigs/1"),
        ("DELETE", "/tasks/task_x/pushNotificationConfigs/1"),
    ):
        assert (await rest(endpoints, secret, path, method=method)).status_code == 400


def test_a_service_that_nobody_calls_over_a2a_does_not_load_the_sdk() -> None:
    code = (
        "import sys; from rota.app import create_app; from rota.platform.settings import Settings; "
        "create_app(Settings(env='test')); sys.exit('a2a' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


async def test_requests_are_counted(endpoints: Service, somebody: Person, secret: str) -> None:
    left = [int((await rest(endpoints, secret)).headers["RateLimit-Remaining"]) for _ in range(2)]
    assert left[0] - left[1] == 1
    assert (await rpc(endpoints, secret, "GetTask", {"id": "task_x"})).status_code == 200
    metrics = (await endpoints.http.get("/metrics")).text
    assert 'rota_a2a_calls_total{operation="ListTasks",outcome="ok"}' in metrics
    assert 'rota_a2a_calls_total{operation="GetTask",outcome="NOT_FOUND"}' in metrics
    # Reading the catalog counts toward the limit of AI endpoints.
    ceiling = int((await somebody.get("/api/agents")).headers["RateLimit-Limit"])
    for _ in range(ceiling - 1):
        await somebody.get("/api/agents", params={"limit": 1})
    # On a busy machine, the limiter of the process may have counted some of them.
    for _ in range(ceiling):
        answer = await rest(endpoints, secret, "/extendedAgentCard")
        if answer.status_code == 429:
            break
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 60
    info = answer.json()["error"]["details"][0]["metadata"]
    assert info["code"] == "RATE_LIMIT_EXCEEDED"
    assert info["retryAfterSeconds"] == answer.headers["Retry-After"]
    # The card of an agent is a page of its own, outside the protocol.
    for _ in range(ceiling):
        card = await rest(endpoints, secret, "/writer/.well-known/agent-card.json")
        if card.status_code == 429:
            break
    assert card.json()["error"].keys() == {"message", "code"}
    assert len(card.headers.get_list("Retry-After")) == 1


async def test_without_the_sdk_the_service_says_what_to_install(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "a2a", None)
    async with Service.start(stack, variant="b", name="a2a_without") as service:
        for method, path in (
            ("GET", "/.well-known/agent-card.json"),
            ("POST", "/a2a"),
            ("GET", "/a2a/tasks"),
            ("POST", "/a2a/message:send"),
        ):
            answer = await service.http.request(method, path)
            assert_error(answer, 404, "NOT_FOUND")
            assert "rota[a2a]" in answer.json()["error"]["message"]
        assert (await service.http.get("/health/live")).status_code == 200


async def test_the_card_resolver_finds_the_card_at_the_root(endpoints: Service) -> None:
    root = url_of(endpoints).removesuffix("/a2a")
    card = await A2ACardResolver(endpoints.http, root).get_agent_card()
    assert card.name == "Rota"
