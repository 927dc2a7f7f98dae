"""The demonstration tool servers, through the MCP client that Rota uses."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from rota.dev.demo import SERVERS
from rota.dev.demo.__main__ import build
from tests.mcp.peers import listening


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient() as http,
        Client(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        yield client


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[str]:
    async with listening(build(tmp_path, pace=0)) as url:
        yield url


async def definitions(url: str) -> dict[str, dict[str, Any]]:
    async with opened(url) as client:
        listed = (await client.list_tools()).tools
    return {
        tool.name: tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed
    }


async def test_every_tool_has_a_title_a_description_and_says_whether_it_reads(demo: str) -> None:
    names = {}
    for server in SERVERS:
        for name, tool in (await definitions(f"{demo}/{server}/mcp")).items():
            names[f"{server}/{name}"] = tool["annotations"]["readOnlyHint"]
            assert tool["title"]
            assert tool["description"]
            if not tool["annotations"]["readOnlyHint"]:
                assert "destructiveHint" in tool["annotations"]
    assert names == {
        "helpdesk/get_ticket": True,
        "helpdesk/search_tickets": True,
        "helpdesk/reply_to_ticket": False,
        "helpdesk/set_tags": False,
        "helpcenter/search": True,
        "helpcenter/get_article": True,
        "accounting/list_open_bills": True,
        "accounting/prepare_payment_batch": False,
    }


async def test_the_write_tools_have_every_kind_of_field(demo: str) -> None:
    reply = (await definitions(f"{demo}/helpdesk/mcp"))["reply_to_ticket"]["inputSchema"]
    batch = (await definitions(f"{demo}/accounting/mcp"))["prepare_payment_batch"]["inputSchema"]
    fields = reply["properties"] | batch["properties"]
    assert {field["type"] for field in fields.values()} == {"string", "number", "boolean", "array"}
    assert fields["status"]["enum"] == ["open", "pending", "solved"]
    assert fields["payOn"]["format"] == "date"
    assert (fields["limitUsd"]["minimum"], fields["limitUsd"]["maximum"]) == (1, 10_000)
    assert fields["invoices"]["items"]["properties"]["amountUsd"]["type"] == "number"
    assert fields["tags"]["items"]["enum"]


async def test_a_reply_is_kept_after_a_restart(tmp_path: Path) -> None:
    reply = {"ticketId": "T-4821", "message": "Hello Mina.", "status": "pending"}
    async with listening(build(tmp_path)) as url, opened(f"{url}/helpdesk/mcp") as client:
        sent = await client.call_tool("reply_to_ticket", reply)
        assert sent.structured_content is not None
        assert sent.structured_content["to"] == "mina@northwind.example"
    async with listening(build(tmp_path)) as url, opened(f"{url}/helpdesk/mcp") as client:
        ticket = (await client.call_tool("get_ticket", {"ticketId": "T-4821"})).structured_content
    assert ticket is not None
    assert ticket["status"] == "pending"
    assert [each["message"] for each in ticket["replies"]] == ["Hello Mina."]


async def test_the_company_has_its_own_tickets(demo: str) -> None:
    tags = {"ticketId": "T-4821", "tags": ["urgent"]}
    async with opened(f"{demo}/fernhill/helpdesk/mcp") as client:
        await client.call_tool("set_tags", tags)
    async with opened(f"{demo}/helpdesk/mcp") as client:
        ticket = (await client.call_tool("get_ticket", {"ticketId": "T-4821"})).structured_content
    assert ticket is not None
    assert ticket["tags"] == ["login"]


@pytest.mark.parametrize(
    ("server", "tool", "arguments", "why"),
    [
        ("helpdesk", "get_ticket", {"ticketId": "T-0000"}, "not found"),
        ("helpdesk", "get_ticket", {"id": 1}, "not valid"),
        ("helpdesk", "list_open_bills", {}, "not found"),
        ("helpcenter", "get_article", {"articleId": "KB-000"}, "not found"),
        (
            "accounting",
            "prepare_payment_batch",
            {
                "invoices": [{"invoiceId": "INV-2041", "supplier": "B", "amountUsd": 9000}],
                "payOn": "2026-12-01",
                "account": "operating",
                "limitUsd": 5000,
            },
            "above the limit of $5,000.00",
        ),
    ],
)
async def test_a_call_that_cannot_work_says_why(
    demo: str, server: str, tool: str, arguments: dict[str, Any], why: str
) -> None:
    async with opened(f"{demo}/{server}/mcp") as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert why in str(result.content)


async def test_prepared_bills_are_no_longer_open(demo: str) -> None:
    async with opened(f"{demo}/accounting/mcp") as client:
        before = (await client.call_tool("list_open_bills", {})).structured_content
        assert before is not None
        bill = before["bills"][0]
        await client.call_tool(
            "prepare_payment_batch",
            {
                "invoices": [bill],
                "payOn": bill["dueDate"],
                "account": "operating",
                "limitUsd": 5000,
            },
        )
        after = (await client.call_tool("list_open_bills", {})).structured_content
    assert after is not None
    assert after["bills"] == before["bills"][1:]


async def test_the_definition_of_one_tool_of_the_company_can_change(demo: str) -> None:
    before = await definitions(f"{demo}/fernhill/helpdesk/mcp")
    async with httpx.AsyncClient() as client:
        await client.post(f"{demo}/_control/change")
    after = await definitions(f"{demo}/fernhill/helpdesk/mcp")
    assert [name for name in after if after[name] != before[name]] == ["set_tags"]
    assert await definitions(f"{demo}/helpdesk/mcp") == before
