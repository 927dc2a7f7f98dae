"""Events as signed webhooks for a program on this machine."""

import asyncio
import base64
import json
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from rota.cli.listen import VARIABLE
from rota_sdk import webhooks
from tests.cli.terminal import Terminal
from tests.service import Person
from tests.tasks.world import create, patch

SECRET = "whsec_" + base64.b64encode(b"a secret for tests only.").decode()


@dataclass
class Program:
    """Receives webhooks, and answers with the next of these states."""

    url: str = ""
    states: list[int] = field(default_factory=list)
    received: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[1:-1]
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.received.append((headers, body))
        state = self.states.pop(0) if self.states else 200
        writer.write(
            f"HTTP/1.1 {state} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()


@pytest.fixture
async def program() -> AsyncIterator[Program]:
    made = Program()
    server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    async with server:
        yield made


async def test_events_arrive_signed_once_and_in_order(
    rota: Terminal, person: Person, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["rota.cli.listen"], "PAUSES_S", (0.0, 0.0, 0.0))
    task = await create(person, name="Import", status="RUNNING")
    await patch(person, task["id"], status="COMPLETED")
    program.states = [500, 302, 204]
    # A proxy of the environment could not reach a program on this machine.
    proxy = {"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "127.0.0.1"}
    done = await rota.ok(
        "listen",
        "--forward-to",
        program.url.replace("127.0.0.1", "localhost"),
        "--after",
        "0",
        "--count",
        "2",
        "--type",
        "task.created",
        "--type",
        "task.completed",
        ROTA_WEBHOOK_SECRET=SECRET,
        **proxy,
    )
    # The first one was sent until it was accepted.
    assert [line.split("  ")[1:] for line in done.out.splitlines()] == [
        ["task.created", task["id"], "→ 204"],
        ["task.completed", task["id"], "→ 200"],
    ]
    events = [
        webhooks.verify(body, headers, secret=SECRET, webhook_id="wh_listen")
        for headers, body in program.received
    ]
    assert [event.type for event in events] == ["task.created"] * 3 + ["task.completed"]
    read = "/api/events?type=task.completed"
    [stored] = (await person.get(read, headers={"Accept": "application/json"})).json()["events"]
    account = (await person.get("/api/me")).json()["account"]["id"]
    # The same text as the webhooks of the service.
    about = {"accountId": account, "webhookId": "wh_listen"}
    assert json.loads(program.received[-1][1]) == stored | about
    assert {event.account_id for event in events} == {account}
    assert SECRET not in done.out + done.err


async def test_events_are_printed_without_a_program(rota: Terminal, person: Person) -> None:
    task = await create(person, name="Import")
    made = ("listen", "--after", "0", "--count", "1", "--type", "task.created")
    assert (await rota.ok(*made)).out.endswith(f"task.created  {task['id']}\n")
    assert (await rota.ok(*made, "--json")).lines[0]["taskId"] == task["id"]


async def test_a_program_that_does_not_answer_is_reported(
    rota: Terminal, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["rota.cli.listen"], "PAUSES_S", ())
    await create(person, name="Import")
    to = ("--forward-to", "http://127.0.0.1:1/hook")
    once = ("listen", *to, "--after", "0", "--count", "1", "--json")
    for done in (await rota.ok(*once), await rota.ok(*once, ROTA_WEBHOOK_SECRET="")):
        assert done.lines[0]["delivery"].startswith("not delivered: ")
        # A new secret, which a program can be given.
        assert re.match(r"Secret: whsec_\S{32}\n", done.err)


@pytest.mark.parametrize(
    ("arguments", "secret", "code", "says"),
    [
        (("--forward-to", "http://localhost:3000"), "whsec_", 2, f"{VARIABLE} is not base64"),
        (("--forward-to", "localhost:3000"), SECRET, 2, "is not a URL such as http://localhost"),
        (("--forward-to", "http://localhost:3000"), "whsec_?", 2, f"{VARIABLE} is not base64"),
        # The service says so.
        (("--type", "Finished!"), SECRET, 1, "must be a type such as task.completed"),
    ],
)
async def test_a_wrong_option_is_one_line(
    rota: Terminal, arguments: tuple[str, ...], secret: str, code: int, says: str
) -> None:
    done = await rota("listen", *arguments, ROTA_WEBHOOK_SECRET=secret)
    assert done.code == code
    *notes, error = done.err.splitlines()
    assert says in error
    assert all(note.startswith("Listening after event ") for note in notes)
