"""The demonstration model, over HTTP with OpenAI's own client."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from openai import AsyncOpenAI, NotFoundError

from rota.dev.demo import SERVERS
from rota.dev.demo.__main__ import build
from rota.dev.demo.definitions import tools_of
from rota.dev.demo.prices import NAMES
from rota.dev.demo.shop import Shop
from rota.platform import schema_process
from rota.runs import call_texts, transcript
from rota.runs.tools import ASK_PERSON, DELEGATE
from tests.agents.catalogs import read_catalog
from tests.mcp.peers import listening

CATALOG = Path(__file__).parents[2] / "catalog"
MODEL = NAMES["fast"]
BUILT_IN = {"ask_person": ASK_PERSON.arguments_schema, "delegate": DELEGATE.arguments_schema}


def offered(*servers: str, delegate: bool = False) -> list[dict[str, Any]]:
    schemas = {
        f"{server}__{tool['name']}": tool["inputSchema"]
        for server in servers
        for tool in tools_of(server)
    }
    schemas |= {name: BUILT_IN[name] for name in ("ask_person", "delegate")[: 1 + delegate]}
    return [
        {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}
        for name, schema in schemas.items()
    ]


class Talk:
    """A run of the model: its calls are made on a shop, and a person answers them."""

    def __init__(self, client: AsyncOpenAI, tools: list[dict[str, Any]]) -> None:
        self._client = client
        self._tools = tools
        self._shop = Shop()
        # The calls so far, as (name, arguments).
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.messages: list[Any] = []

    async def run(self, task: str, *answers: str, instructions: str = "You help.") -> str:
        """The final answer. `answers` are the results of the calls that do not read, in order."""
        self.messages = [
            {"role": "system", "content": instructions},
            {"role": "user", "content": task},
        ]
        return await self.go_on(*answers)

    async def go_on(self, *answers: str) -> str:
        waiting = list(answers)
        schemas = {t["function"]["name"]: t["function"]["parameters"] for t in self._tools}
        for _ in range(12):
            response = await self._client.chat.completions.create(
                model=MODEL, messages=self.messages, tools=cast(Any, self._tools)
            )
            message = response.choices[0].message
            self.messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                assert message.content
                return message.content
            for call in message.tool_calls:
                assert call.type == "function"
                name, arguments = call.function.name, json.loads(call.function.arguments)
                raw_schema = json.dumps(schemas[name]).encode()
                assert schema_process.check(raw_schema, call.function.arguments.encode())[0] == "ok"
                self.calls.append((name, arguments))
                tool = name.partition("__")[2]
                if waiting and not tool.startswith(("get", "list", "search")):
                    result = waiting.pop(0)
                else:
                    result = json.dumps(self._shop.call(tool, arguments)) if tool else "Yes."
                reply = {"role": "tool", "tool_call_id": call.id, "content": result}
                self.messages.append(reply)
        raise AssertionError(f"it does not end: {self.calls}")


@pytest.fixture
async def client() -> AsyncIterator[AsyncOpenAI]:
    async with (
        listening(build(pace=0)) as url,
        AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as opened,
    ):
        yield opened


async def test_it_says_that_it_is_a_demonstration_and_reports_tokens(client: AsyncOpenAI) -> None:
    assert [m.id async for m in client.models.list()] == list(NAMES.values())
    request: Any = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "# Tea\n\nWrite two steps."}],
    }
    first = await client.chat.completions.create(**request)
    again = await client.chat.completions.create(**request)
    assert first.choices == again.choices
    assert first.model == MODEL == "demonstration-model-fast"
    assert "demonstration model" in (first.choices[0].message.content or "")
    assert first.choices[0].finish_reason == "stop"
    assert first.usage is not None
    assert 0 < first.usage.prompt_tokens < first.usage.total_tokens


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"severity": {"enum": ["low", "high"]}, "summary": {"type": "string"}}},
        {"properties": {"count": {"type": "integer", "minimum": 3}, "tags": {"minItems": 2}}},
        {
            "properties": {
                "total": {"type": "number", "exclusiveMinimum": 0, "maximum": 5},
                "ticket": {"type": "string", "pattern": "^T-[0-9]+$"},
                "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
                "rows": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": "object", "required": ["ok"], "properties": {"ok": {}}},
                },
            },
        },
    ],
)
async def test_an_answer_matches_the_schema_of_the_task(
    client: AsyncOpenAI, schema: dict[str, Any]
) -> None:
    whole = {"type": "object", "required": list(schema["properties"]), **schema}
    if "tags" in schema["properties"]:
        schema["properties"]["tags"] |= {"type": "array", "items": {"type": "string"}}
    response = await client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "# Rate T-17\n\nIs the severity high?"}],
        response_format={"type": "json_schema", "json_schema": {"name": "o", "schema": whole}},
    )
    content = response.choices[0].message.content or ""
    assert schema_process.check(json.dumps(whole).encode(), content.encode())[0] == "ok", content
    assert json.loads(content).get("severity", "high") == "high"


@pytest.mark.parametrize(
    "result",
    [
        call_texts.GONE,
        call_texts.UNKNOWN_AND_GONE,
        call_texts.EARLIER_VERSION,
        transcript.not_decided(asks=False, maybe_made=True),
        transcript.not_decided(asks=False, maybe_made=False),
        "This call was not made: the server did not answer. Continue without this tool.",
    ],
)
async def test_a_call_that_was_not_made_is_not_reported_as_done(
    client: AsyncOpenAI, result: str
) -> None:
    talk = Talk(client, offered("helpdesk"))
    answer = await talk.run("# R\n\nReply to ticket T-4821.", result)
    assert "failed, so the work is not complete" in answer
    assert "Done." not in answer


async def test_a_result_that_begins_like_a_failure_is_none(client: AsyncOpenAI) -> None:
    talk = Talk(client, offered("helpdesk"))
    answer = await talk.run("# R\n\nReply to ticket T-4821.", "This call was recorded as R-7.")
    assert "failed" not in answer


async def test_a_stream_has_the_same_answer_calls_and_tokens(client: AsyncOpenAI) -> None:
    request: Any = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "# R\n\nReply to ticket T-4821."}],
        "tools": offered("helpdesk"),
    }
    whole = await client.chat.completions.create(**request)
    chunks = [
        chunk
        async for chunk in await client.chat.completions.create(
            **request, stream=True, stream_options={"include_usage": True}
        )
    ]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    message = whole.choices[0].message
    assert "".join(delta.content or "" for delta in deltas) == message.content
    [call] = [call for delta in deltas for call in delta.tool_calls or ()]
    assert message.tool_calls
    [expected] = message.tool_calls
    assert call.id == expected.id
    assert call.function is not None
    assert call.function.name == "helpdesk__get_ticket"
    assert chunks[-1].usage == whole.usage
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "tool_calls"


async def test_an_answer_is_cut_off_at_the_limit(client: AsyncOpenAI) -> None:
    cut = await client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "# T\n\nWrite."}], max_tokens=5
    )
    assert cut.choices[0].finish_reason == "length"


async def test_an_unknown_model_is_not_found(client: AsyncOpenAI) -> None:
    with pytest.raises(NotFoundError, match="demonstration-model"):
        await client.chat.completions.create(
            model="gpt-9", messages=[{"role": "user", "content": "Hello"}]
        )


async def test_it_reads_first_then_proposes_one_reply_then_answers(client: AsyncOpenAI) -> None:
    talk = Talk(client, offered("helpdesk", "helpcenter"))
    answer = await talk.run("# Missing boxes\n\nReply to ticket T-4823.")
    assert [name for name, _ in talk.calls] == [
        "helpdesk__get_ticket",
        "helpcenter__search",
        "helpcenter__get_article",
        "helpdesk__reply_to_ticket",
    ]
    reply = talk.calls[-1][1]
    assert reply["ticketId"] == "T-4823"
    assert reply["message"].startswith("Hello Aiko,")
    assert "missing parcel" in reply["message"]
    assert answer.startswith("## Missing boxes")
    assert "| 4 | `helpdesk/reply_to_ticket` | ok |" in answer


async def test_it_notices_arguments_that_a_person_edited(client: AsyncOpenAI) -> None:
    result = '{"sent": true}' + transcript.EDITED_CALL.format(names="message, status")
    talk = Talk(client, offered("helpdesk", "helpcenter"))
    answer = await talk.run("# Invoice\n\nReply to ticket T-4822.", result)
    assert "- `status`: solved (edited by you)" in answer
    assert "- `ticketId`: T-4822\n" in answer


async def test_after_a_rejection_with_a_reason_it_corrects_the_call(client: AsyncOpenAI) -> None:
    rejected = "A person rejected this call. Reason: Make it shorter and set it to pending."
    talk = Talk(client, offered("helpdesk", "helpcenter"))
    await talk.run("# Invoice\n\nReply to ticket T-4822.", rejected)
    first, second = [a for name, a in talk.calls if name == "helpdesk__reply_to_ticket"]
    assert second["status"] == "pending" != first["status"]
    assert len(second["message"]) < len(first["message"])
    said = [m.get("content", "") for m in talk.messages if m["role"] == "assistant"]
    assert any("You rejected the call and wrote" in text for text in said)


async def test_after_a_rejection_without_a_reason_it_ends(client: AsyncOpenAI) -> None:
    talk = Talk(client, offered("helpdesk"))
    answer = await talk.run("# I\n\nReply to ticket T-4822.", "A person rejected this call.")
    assert [name for name, _ in talk.calls].count("helpdesk__reply_to_ticket") == 1
    assert "because you rejected it" in answer


async def test_a_rejected_answer_is_written_again(client: AsyncOpenAI) -> None:
    talk = Talk(client, [])
    await talk.run("# Post\n\nWrite a post.")
    note = "A person rejected this answer. Reason: Name the price."
    talk.messages.append({"role": "user", "content": note})
    assert "**Changed after your decision: “Name the price.”.**" in await talk.go_on()


async def test_it_fills_lists_of_objects_dates_and_numbers(client: AsyncOpenAI) -> None:
    talk = Talk(client, offered("accounting"))
    await talk.run("# Pay\n\nPrepare the payment batch for the due bills.")
    name, batch = talk.calls[-1]
    assert name == "accounting__prepare_payment_batch"
    assert {bill["invoiceId"] for bill in batch["invoices"]} >= {"INV-2041", "INV-2042"}
    assert batch["account"] == "operating"


async def test_a_director_delegates_to_the_agent_that_the_task_names(client: AsyncOpenAI) -> None:
    task = "# Backlog\n\nReply to ticket T-4825. Delegate the reply to ticket-responder."
    talk = Talk(client, offered("helpdesk", delegate=True))
    answer = await talk.run(task, "The subtask has answered.")
    assert talk.calls[-1] == (
        "delegate",
        {
            "agent": "ticket-responder",
            "name": "Reply to ticket T-4825.",
            "input": "Reply to ticket T-4825.",
        },
    )
    assert "`delegate`" in answer


async def test_it_asks_a_person_if_the_task_says_so(client: AsyncOpenAI) -> None:
    talk = Talk(client, offered("helpdesk"))
    await talk.run("# Tags\n\nAsk me first, then set the tags of ticket T-4824.", "Yes.")
    assert [name for name, _ in talk.calls][-2:] == ["ask_person", "helpdesk__set_tags"]


async def test_every_shipped_agent_gets_an_answer(client: AsyncOpenAI) -> None:
    agents = read_catalog(CATALOG)
    assert len(agents) == 30
    for agent in agents:
        mine = [
            tool
            for tool in offered(*SERVERS, delegate=True)
            if "__" not in (name := tool["function"]["name"])
            or agent.may_use(name.replace("__", "/"))
        ]
        task = f"# Work\n\n{agent.use_for[0]}"
        answer = await Talk(client, mine).run(task, instructions=agent.instructions)
        assert "demonstration model" in answer, agent.name
