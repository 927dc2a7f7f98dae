"""`rota api`, and errors as JSON."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from rota.cli.api import print_body
from rota.cli.exits import ExitCode
from tests.cli.terminal import Terminal
from tests.service import Person, Service
from tests.tasks.world import create, patch


async def test_a_request_is_sent_with_the_credential_and_printed_as_it_came(
    rota: Terminal, person: Person
) -> None:
    made = await rota.ok(
        "api",
        "post",
        "/api/tasks",
        "-f",
        "name=Import: now=1",
        "-F",
        "priority=3",
        "-F",
        "description=null",
    )
    task = made.json["task"]
    assert (task["name"], task["priority"]) == ("Import: now=1", 3)
    shown = await rota.ok("api", "GET", f"api/tasks/{task['id']}")
    assert shown.out == (await person.get(f"/api/tasks/{task['id']}")).text
    assert (await rota.ok("api", "GET", f"{rota.variables['ROTA_URL']}/api/me")).json["user"]
    listed = await rota.ok("api", "GET", "/api/tasks?limit=1", "-f", "status=PENDING,FAILED")
    assert listed.json["total"] == 1


async def test_a_body_comes_from_a_file_or_a_pipe(rota: Terminal, tmp_path: Path) -> None:
    (tmp_path / "body").write_text('{"name": "From a file"}')
    made = await rota.ok("api", "POST", "/api/tasks", "--input", str(tmp_path / "body"))
    assert made.json["task"]["name"] == "From a file"
    made = await rota.ok("api", "POST", "/api/tasks", "--input", "-", typed='{"name": "Piped"}')
    assert made.json["task"]["name"] == "Piped"


async def test_the_same_idempotency_key_makes_one_task(rota: Terminal) -> None:
    command = ("api", "POST", "/api/tasks", "-f", "name=Once")
    keyed = (*command, "--idempotency-key", "k1")
    assert (await rota.ok(*keyed)).json == (await rota.ok(*keyed)).json
    # Without one, each command has its own.
    assert (await rota.ok(*command)).json != (await rota.ok(*command)).json


async def test_the_pages_of_a_list_become_one(rota: Terminal, person: Person) -> None:
    names = [f"Task {number}" for number in range(7)]
    for name in names:
        await create(person, name=name)
    read = ("api", "GET", "--paginate")
    found = (await rota.ok(*read, "/api/tasks?limit=3")).json
    assert [task["name"] for task in found["tasks"]] == names[::-1]
    assert found["total"] == 7
    events = (await rota.ok(*read, "/api/events", "-F", "limit=2", "-F", "after=1")).json["events"]
    assert [event["sequence"] for event in events] == list(range(2, 9))
    agents = (await rota.ok(*read, "/api/agents?limit=9")).json
    assert len({agent["name"] for agent in agents["agents"]}) == agents["total"]
    assert agents["departments"]
    for wrong in (("/api/me",), ("/api/tasks?offset=3",), ("/.well-known/security.txt",)):
        assert (await rota(*read, *wrong)).code in (ExitCode.USAGE, ExitCode.ERROR), wrong
    assert (await rota("api", "POST", "/api/tasks", "--paginate")).code == ExitCode.USAGE


async def test_a_header_chooses_another_format(rota: Terminal) -> None:
    trail = await rota.ok("api", "GET", "/api/audit", "-H", "Accept: application/x-ndjson")
    assert "head" in json.loads(trail.out.splitlines()[-1])


async def test_the_status_and_the_headers_are_shown_on_request(rota: Terminal) -> None:
    shown = await rota.ok("api", "GET", "/api/me", "--include")
    head, _, body = shown.out.partition("\n\n")
    assert head.splitlines()[0] == "HTTP/1.1 200 OK"
    assert "content-type: application/json" in head
    assert json.loads(body)["user"]
    missing = await rota("api", "GET", "/api/tasks/task_x", "-i")
    assert missing.code == ExitCode.ERROR
    assert missing.out.startswith("HTTP/1.1 404 ")


async def test_no_credential_is_sent_on_request(rota: Terminal, terminal: Terminal) -> None:
    assert (await rota("api", "GET", "/api/me", "--anonymous")).code == ExitCode.ERROR
    config = await rota.ok("api", "GET", "/api/auth/config", "--anonymous", ROTA_API_KEY=None)
    assert config.json["issuers"]


async def test_a_stream_is_refused(rota: Terminal, person: Person) -> None:
    task = await create(person, name="T")
    refused = await rota("api", "GET", f"/api/tasks/{task['id']}/events")
    assert refused.code == ExitCode.USAGE
    assert "rota tasks follow" in refused.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("GET", "https://evil.example/api/me"), "is not a URL of"),
        (("POST", "/api/tasks", "-f", "name"), "name=value"),
        (("POST", "/api/tasks", "-F", "name=x"), "not JSON"),
        (("POST", "/api/tasks", "--input", "/no/such/file"), "Cannot read"),
        (("TRACE", "/api/tasks"), "TRACE"),
        (("GET", "/api/tasks", "-H", "Accept"), "is not a header"),
        (("GET", "/api/tasks", "-H", "authorization: Bearer x"), "ROTA_API_KEY"),
    ],
)
async def test_a_wrong_request_is_refused(
    rota: Terminal, arguments: tuple[str, ...], says: str
) -> None:
    done = await rota("api", *arguments)
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert says in done.err


async def test_a_field_that_the_service_does_not_know_is_its_refusal(rota: Terminal) -> None:
    done = await rota("api", "POST", "/api/tasks", "-f", "nmae=x")
    assert (done.code, done.out) == (ExitCode.ERROR, "")
    assert "nmae" in done.err


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_indented_json_that_cannot_control_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for content, shown in (
        (b'{"a":"\xc2\x9b1m"}', '{\n  "a": "\\u009b1m"\n}\n'),
        (b"a\x1bb", "a⟨U+001B⟩b\n"),
        (b"", ""),
    ):
        screen = Screen()
        monkeypatch.setattr("sys.stdout", screen)
        print_body(content)
        assert screen.getvalue() == shown


def error_of(text: str) -> Any:
    assert len(text.splitlines()) == 1
    return json.loads(text)["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("tasks", "show"),
        ("tasks", "list", "--status", "DONE"),
        ("tasks", "list", "--no-such-option"),
        ("tasks", "create", "T", "--dry-run"),
        ("no-such-command",),
        ("admin", "keys", "revoke", "x"),
    ],
)
async def test_a_wrong_command_is_one_json_error(
    rota: Terminal, arguments: tuple[str, ...]
) -> None:
    done = await rota(*arguments, "--json")
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    error = error_of(done.err)
    assert (error["code"], error["requestId"]) == (None, None)
    assert error["message"]
    # Without --json, it is for people.
    assert (await rota(*arguments)).err.count("\n") > 1


async def test_an_error_of_the_service_is_complete_in_json(rota: Terminal) -> None:
    done = await rota("tasks", "create", "T", "--priority", "99", "--json")
    error = error_of(done.err)
    assert (done.code, error["code"], error["status"]) == (1, "VALIDATION_ERROR", 400)
    assert [each["field"] for each in error["details"]] == ["priority"]
    assert error["requestId"]


async def test_numbers_of_the_environment_are_checked(rota: Terminal, office: Service) -> None:
    for variable in ("ROTA_MAX_RETRIES", "ROTA_TIMEOUT_S"):
        for wrong in ("often", "-1", "nan"):
            done = await rota("whoami", **{variable: wrong})
            assert (done.code, variable in done.err) == (ExitCode.USAGE, True)
    await rota.ok("whoami", ROTA_MAX_RETRIES="0", ROTA_TIMEOUT_S="30")


async def test_following_stops_only_at_the_review_that_waits(
    rota: Terminal, person: Person
) -> None:
    task = await create(person, name="Twice", status="WAITING_APPROVAL")
    review = (await rota.ok("tasks", "review", task["id"], "--json")).json["review"]
    shown = ("--review", str(review["number"]), "--digest", review["digest"])
    await rota.ok("tasks", "approve", task["id"], *shown)
    await patch(person, task["id"], status="WAITING_APPROVAL")
    # Another task that waits changes nothing.
    await create(person, name="Other", status="WAITING_APPROVAL")
    done = await rota("tasks", "follow", task["id"], "--until-review", "--json")
    assert done.code == ExitCode.REVIEW_WAITS
    types = [line["type"] for line in done.lines[:-1]]
    assert types.count("task.approved") == 1
    assert types.index("task.approved") < len(types) - 1
    assert types[-1] == "task.waiting_approval"


async def test_following_shows_the_review_that_took_the_place_of_the_first(
    rota: Terminal, person: Person
) -> None:
    task = await create(person, name="Send the quote", status="WAITING_APPROVAL")
    # There is no second event about waiting.
    await patch(person, task["id"], name="Send the invoice")
    done = await rota("tasks", "follow", task["id"], "--until-review", "--json")
    assert done.code == ExitCode.REVIEW_WAITS
    review = (await rota.ok("tasks", "review", task["id"], "--json")).json["review"]
    assert (review["number"], done.lines[-1]["review"]) == (2, review)
    shown = await rota("tasks", "follow", task["id"], "--until-review")
    assert f"  Review 2: {review['summary']}\n" in shown.err
