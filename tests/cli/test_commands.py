"""The commands of the client: what they do, what they print, and what they exit with."""

import json
from pathlib import Path

import pytest

from rota.cli.exits import ExitCode
from rota.cli.output import print_json
from tests.cli.terminal import Terminal
from tests.mcp.peers import Peer, definition
from tests.service import Person, Service
from tests.tasks.world import create, patch


async def test_a_task_is_created_shown_and_cancelled(rota: Terminal) -> None:
    task_id = (await rota.ok("tasks", "create", "Nightly import", "--input", "-", typed="a\nb")).out
    task_id = task_id.strip()
    shown = await rota.ok("tasks", "show", task_id)
    assert "Nightly import" in shown.out
    assert "PENDING" in shown.out
    assert (await rota.ok("tasks", "show", task_id, "--json")).json["task"]["input"] == "a\nb"
    cancelled = await rota.ok("tasks", "cancel", task_id)
    assert cancelled.out == f"{task_id} is CANCELLED.\n"
    refused = await rota("tasks", "retry", task_id)
    assert refused.code == ExitCode.ERROR
    assert len(refused.err.splitlines()) == 1


async def test_a_repeated_command_with_the_same_key_creates_one_task(rota: Terminal) -> None:
    command = ("tasks", "create", "Once", "--idempotency-key", "k1", "--json")
    first, second = (await rota.ok(*command)).json, (await rota.ok(*command)).json
    assert first["task"]["id"] == second["task"]["id"]
    assert len((await rota.ok("tasks", "list", "--json")).json["tasks"]) == 1


async def test_lists_have_filters_and_limits(rota: Terminal, person: Person) -> None:
    for number in range(5):
        await create(person, name=f"Task {number}", status="FAILED" if number % 2 else "RUNNING")
    listed = await rota.ok("tasks", "list", "--status", "FAILED", "--limit", "1")
    assert "Task 3" in listed.out
    assert "Task 1" not in listed.out
    assert listed.err == "1 of 2. --limit shows more.\n"
    cut = (await rota.ok("tasks", "list", "--limit", "2", "--json")).json
    assert (len(cut["tasks"]), cut["total"]) == (2, 5)
    assert (await rota.ok("tasks", "list", "--limit", "5")).err == ""
    both = ("--status", "FAILED", "--status", "RUNNING")
    found = (await rota.ok("tasks", "list", *both, "--json")).json["tasks"]
    assert [task["name"] for task in found] == [f"Task {number}" for number in (4, 3, 2, 1, 0)]
    assert (await rota.ok("tasks", "list", "--search", "nothing")).out == "There are no tasks.\n"


@pytest.mark.parametrize(
    ("status", "code"),
    [("COMPLETED", 0), ("FAILED", ExitCode.TASK_FAILED), ("CANCELLED", ExitCode.TASK_CANCELLED)],
)
async def test_following_a_task_exits_with_its_outcome(
    rota: Terminal, person: Person, status: str, code: int
) -> None:
    task = await create(person, name="Import", status="RUNNING")
    await patch(person, task["id"], status=status)
    done = await rota("tasks", "follow", task["id"])
    assert done.code == code
    assert done.err.splitlines()[0] == "· created"
    assert done.err.splitlines()[-1].startswith(f"{status} · {task['id']}")
    lines = (await rota("tasks", "follow", task["id"], "--json")).lines
    assert lines[-1]["task"]["status"] == status
    types = ["task.created", "task.started", f"task.{status.lower()}"]
    assert [line["type"] for line in lines[:-1]] == types


async def test_a_decision_names_the_review_that_was_shown(rota: Terminal, person: Person) -> None:
    task = await create(person, name="Send the quote", status="WAITING_APPROVAL")
    stopped = await rota("tasks", "follow", task["id"], "--until-review")
    assert stopped.code == ExitCode.REVIEW_WAITS
    review = (await rota.ok("tasks", "review", task["id"], "--json")).json["review"]
    assert review["digest"] in (await rota.ok("tasks", "review", task["id"])).out
    shown = ("--review", str(review["number"]), "--digest", review["digest"])
    # Somebody changes the text meanwhile, so another review waits.
    await patch(person, task["id"], description="Something else")
    stale = await rota("tasks", "approve", task["id"], *shown)
    assert stale.code == ExitCode.REVIEW_STALE
    assert len(stale.err.splitlines()) == 1
    now = (await rota.ok("tasks", "review", task["id"], "--json")).json["review"]
    shown = ("--review", str(now["number"]), "--digest", now["digest"])
    done = await rota.ok("tasks", "approve", task["id"], *shown)
    assert done.out.startswith(f"{task['id']} is ")
    other = await create(person, name="Send", status="WAITING_APPROVAL")
    review = (await rota.ok("tasks", "review", other["id"], "--json")).json["review"]
    shown = ("--review", str(review["number"]), "--digest", review["digest"])
    rejected = await rota.ok("tasks", "reject", other["id"], *shown, "--reason", "No.", "--json")
    assert rejected.json["task"]["status"] == "CANCELLED"


async def test_scripts_read_what_waits_as_json(rota: Terminal, person: Person) -> None:
    task = await create(person, name="Send it", status="WAITING_APPROVAL")
    [approval] = (await rota.ok("inbox", "--json")).json["approvals"]
    assert approval["task"]["id"] == task["id"]


async def test_a_failed_task_is_retried(rota: Terminal, person: Person) -> None:
    task = await create(person, name="Import", status="FAILED")
    assert (await rota.ok("tasks", "retry", task["id"])).out.strip() == task["id"]
    refused = await rota("tasks", "retry", task["id"])
    assert refused.code == ExitCode.ERROR


async def test_a_text_can_come_from_a_file_or_a_pipe_and_begin_with_an_at(
    rota: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "text").write_bytes("Grüße".encode())
    for given, typed, expected in (
        (f"@{tmp_path / 'text'}", None, "Grüße"),
        ("-", "Grüße", "Grüße"),
        ("@@ada, look", None, "@ada, look"),
    ):
        done = await rota.ok("tasks", "create", "T", "--input", given, "--json", typed=typed)
        assert done.json["task"]["input"] == expected
    (tmp_path / "text").write_bytes(b"\xff")
    wrong = await rota("tasks", "create", "T", "--input", f"@{tmp_path / 'text'}")
    assert (wrong.code, wrong.err) == (2, f"{tmp_path / 'text'} is not UTF-8 text.\n")


async def test_only_one_option_can_read_standard_input(rota: Terminal) -> None:
    twice = ("tasks", "create", "T", "--input", "-", "--description", "-")
    done = await rota(*twice, typed="Hello")
    assert done.code == ExitCode.USAGE
    assert "Only one option can read standard input (-)." in done.err
    assert (await rota.ok("tasks", "list", "--json")).json["tasks"] == []


async def test_a_quote_creates_nothing(rota: Terminal) -> None:
    quote = await rota.ok("tasks", "create", "Q", "--agent", "process-writer", "--dry-run")
    assert "Costs at most" in quote.out
    assert (await rota.ok("tasks", "list", "--json")).json["tasks"] == []
    quote = await rota.ok(
        "tasks", "create", "Q", "--agent", "process-writer", "--dry-run", "--json"
    )
    assert quote.json["quote"]["agent"]["name"] == "process-writer"
    alone = await rota("tasks", "create", "Q", "--dry-run")
    assert alone.code == ExitCode.USAGE


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("tasks", "show", "task_x"), 1, "not found"),
        (("tasks", "create", "T", "--agent", "nobody"), 1, "agent"),
        (("tasks", "create", "T", "--input", "@/no/such/file"), 2, "Cannot read /no/such/file"),
        (("tasks", "create", "T", "--output-schema", "{"), 2, "--output-schema is not valid JSON"),
        (("tasks", "fork", "task_x"), 2, "--step"),
        (("tasks", "list", "--status", "DONE"), 2, "DONE"),
        (("agents", "show", "nobody"), 1, "not found"),
        (("tools", "show", "nowhere"), 1, "No tool server is called 'nowhere'. Connected: none."),
        (("tools", "call", "x", "y", "--arguments", "[]"), 2, "must be a JSON object"),
        (("keys", "delete", "x"), 2, "is not an ID of the form key_…"),
        (("keys", "create", "K", "--scope", "everything"), 1, "scopes"),
        (("schedules", "create", "S", "--cron", "often"), 1, "cron"),
        (("schedules", "show", "sched_x"), 1, "not found"),
        (("tasks", "list", "--account", "acct_x"), 1, "account"),
    ],
)
async def test_a_refusal_is_one_line_that_says_what_is_wrong(
    rota: Terminal, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = await rota(*arguments)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert "Traceback" not in done.err


async def test_text_of_others_cannot_control_the_terminal(rota: Terminal, person: Person) -> None:
    name = "A\x1b[2J\u202eB\x07"
    task = await create(person, name=name.replace("\x07", ""), status="RUNNING")
    await patch(person, task["id"], status="COMPLETED", output="\x1b]0;x\x07 done\nand done")
    for command in (("list",), ("show", task["id"]), ("follow", task["id"])):
        done = await rota("tasks", *command)
        assert "\x1b" not in done.out + done.err, command
        assert "\u202e" not in done.out + done.err, command
    assert "⟨U+001B⟩]0;x⟨U+0007⟩ done\nand done" in (await rota("tasks", "follow", task["id"])).out


def test_json_keeps_its_values_and_cannot_control_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = {"text": "a\x1b[2J\x9b1m\x7f\u202eü🜁\U000e0041\n"}
    print_json(value)
    printed = capsys.readouterr().out
    assert json.loads(printed) == value
    assert "ü🜁" in printed
    assert not set(printed) & set("\x1b\x9b\x7f\u202e\U000e0041")


async def test_agents_are_listed_found_and_shown(rota: Terminal) -> None:
    listed = await rota.ok("agents", "list")
    assert len(listed.out.splitlines()) == 31
    assert (await rota.ok("agents", "list", "--json", "--limit", "3")).json["agents"][2]
    best = (await rota.ok("agents", "find", "write a checklist", "--json")).json["agent"]["name"]
    assert best in (await rota.ok("agents", "find", "write a checklist")).out
    shown = await rota.ok("agents", "show", "process-writer")
    assert "Asks before tools" in shown.out
    assert (await rota.ok("agents", "show", "process-writer", "--json")).json["agent"]["version"]


async def test_a_tool_server_is_connected_called_and_removed(rota: Terminal) -> None:
    async with Peer(token="secret").serve() as peer:
        connected = await rota.ok("tools", "connect", "desk", peer.url, "--token", typed="secret\n")
        assert connected.out == "desk is CONNECTED: 4 tools.\n"
        assert "secret" not in connected.err
        assert "desk" in (await rota.ok("tools", "list")).out
        tools = (await rota.ok("tools", "show", "desk", "--json")).json["tools"]
        assert {tool["name"] for tool in tools} == {"add", "note", "wait", "fail"}
        assert "Writes a note." in (await rota.ok("tools", "show", "desk")).out
        assert "desk is CONNECTED" in (await rota.ok("tools", "ping", "desk")).out
        numbers = ("--arguments", '{"a": 2, "b": 3}')
        assert (await rota.ok("tools", "call", "desk", "add", *numbers)).json == {"sum": 5}
        assert (await rota.ok("tools", "call", "desk", "note")).out == "done\n"
        failed = await rota("tools", "call", "desk", "fail")
        assert failed.code == 1
        assert (failed.out, failed.err) == ("It did not work.\n", "The tool reports an error.\n")
        wrong = await rota("tools", "call", "desk", "add", "--arguments", '{"a": "x"}')
        assert wrong.code == ExitCode.ERROR
        assert (await rota.ok("tools", "accept", "desk")).out == "Every tool of desk is accepted.\n"
        nothing = (await rota.ok("tools", "accept", "desk", "--json")).json
        assert nothing["server"]["name"] == "desk"
        peer.tools["add"] = definition("add", "Adds differently.", read_only=True)
        changed = await rota.ok("tools", "ping", "desk")
        assert "desk is CHANGED" in changed.out
        assert "rota tools accept desk" in changed.err
        shown = await rota.ok("tools", "show", "desk")
        assert "changed" in shown.out
        refused = await rota("tools", "accept", "desk")
        assert refused.code == ExitCode.USAGE
        assert '+ description: "Adds differently."' in refused.err
        assert "--yes" in refused.err
        assert "has no tool 'sub'" in (await rota("tools", "accept", "desk", "sub")).err
        assert (await rota.ok("tools", "accept", "desk", "add", "--yes")).out == "Accepted: add.\n"
        assert "desk is CONNECTED" in (await rota.ok("tools", "ping", "desk")).out
        assert (await rota.ok("tools", "list", "--json")).json["servers"][0]["name"] == "desk"
        assert (await rota.ok("tools", "ping", "desk", "--json")).json["ok"] is True
        called = await rota.ok("tools", "call", "desk", "note", "--json")
        assert called.json["result"]["isError"] is False
    down = await rota("tools", "ping", "desk")
    assert down.code == 1
    assert (await rota.ok("tools", "disconnect", "desk")).out == "desk is disconnected.\n"
    assert (await rota.ok("tools", "list")).out == "No tool server is connected.\n"


async def test_usage_shows_what_is_left(rota: Terminal) -> None:
    shown = await rota.ok("usage", "--by", "agent", "--from", "2026-01-01")
    assert "Available" in shown.out
    assert "Nothing was spent from 2026-01-01" in shown.out
    found = (await rota.ok("usage", "--json")).json
    assert found["usage"]["groupBy"] == "day"
    assert found["balance"]["totalAvailable"] >= 0


async def test_a_key_is_created_used_and_revoked(
    rota: Terminal, office: Service, terminal: Terminal
) -> None:
    made = await rota.ok("keys", "create", "CI", "--scope", "tasks:read", "--days", "30")
    secret = made.out.strip()
    assert secret.startswith("rota_")
    await rota.ok("tasks", "list", ROTA_API_KEY=secret)
    refused = await rota("tasks", "create", "T", ROTA_API_KEY=secret)
    assert refused.code == ExitCode.ERROR
    [key] = (await rota.ok("keys", "list", "--json")).json["keys"]
    assert key["id"] in (await rota.ok("keys", "list")).out
    assert (await rota.ok("keys", "delete", key["id"])).out == f"{key['id']} is revoked.\n"
    assert (await rota.ok("keys", "list")).out == "There are no API keys.\n"
    other = (await rota.ok("keys", "create", "CI", "--json")).json["key"]["id"]
    deleted = await rota.ok("keys", "delete", other, "--json")
    assert deleted.json == {"deleted": True, "id": other}


async def test_policies_are_shown_and_changed(rota: Terminal) -> None:
    assert "no limit" in (await rota.ok("policies", "show")).out
    changed = await rota.ok("policies", "set", "--max-cost-cents", "500", "--approvers", "anyone")
    assert "$5.00" in changed.out
    # What is not given stays.
    kept = (await rota.ok("policies", "set", "--no-second-person", "--json")).json["approvals"]
    assert kept == {"approvers": "anyone", "secondPerson": False, "maxCostCents": 500}
    refused = await rota("policies", "set", "--second-person")
    assert refused.code == ExitCode.ERROR
    assert "at least two" in refused.err
    assert (await rota("policies", "set", "--max-cost-cents", "1", "--no-max-cost")).code == 2
    assert "no limit" in (await rota.ok("policies", "set", "--no-max-cost")).out


async def test_a_rule_is_made_listed_and_revoked(rota: Terminal) -> None:
    async with Peer().serve() as peer:
        peer.tools["issue_write"] = definition("issue_write")
        await rota.ok("tools", "connect", "github", peer.url)
    assert (await rota.ok("rules", "list")).out == "There are no rules.\n"
    made = ("rules", "create", "github", "issue_write", "--agent", "bug-triager", "--max-uses", "3")
    for wrong in ("[]", '{"title": {"equals": 1}}'):
        assert (await rota(*made, "--arguments", wrong)).code == ExitCode.USAGE
    assert (await rota(*made, "--arguments", '{"title": {}}')).code == ExitCode.ERROR
    rule = (await rota.ok(*made, "--arguments", '{"title": {"any": true}}')).out.strip()
    assert rule in (await rota.ok("rules", "list")).out
    assert "0 of 3" in (await rota.ok("rules", "list")).out
    other = (await rota.ok(*made, "--arguments", "{}", "--json")).json["rule"]["id"]
    deleted = await rota.ok("rules", "delete", other, "--json")
    assert deleted.json == {"deleted": True, "id": other}
    assert (await rota.ok("rules", "delete", rule)).out == f"{rule} is revoked.\n"
    states = [each["state"] for each in (await rota.ok("rules", "list", "--json")).json["rules"]]
    assert states == ["revoked", "revoked"]


async def test_a_schedule_is_created_paused_run_and_deleted(rota: Terminal) -> None:
    made = ("schedules", "create", "Weekly", "--cron", "0 9 * * MON", "--input", "x")
    schedule = (await rota.ok(*made, "--time-zone", "Europe/Berlin")).out.strip()
    assert "Weekly" in (await rota.ok("schedules", "list")).out
    assert (await rota.ok("schedules", "pause", schedule)).out == "Weekly is paused.\n"
    assert "Weekly runs next at" in (await rota.ok("schedules", "resume", schedule)).out
    task = (await rota.ok("schedules", "run", schedule, "--json")).json["task"]
    shown = await rota.ok("schedules", "show", schedule)
    assert task["id"] in shown.out
    assert len((await rota.ok("schedules", "show", schedule, "--json")).json["nextTimes"]) == 5
    assert (await rota.ok("schedules", "list", "--json")).json["schedules"][0]["id"] == schedule
    paused = await rota.ok("schedules", "pause", schedule, "--json")
    assert paused.json["schedule"]["paused"] is True
    assert (await rota.ok("schedules", "run", schedule)).out.startswith("task_")
    other = (await rota.ok(*made, "--paused", "--json")).json["schedule"]["id"]
    deleted = await rota.ok("schedules", "delete", other, "--json")
    assert deleted.json == {"deleted": True, "id": other}
    assert (await rota.ok("schedules", "delete", schedule)).out == f"{schedule} is deleted.\n"
    assert (await rota.ok("schedules", "list")).out == "There are no schedules.\n"


async def test_json_is_what_the_api_returns(rota: Terminal, person: Person) -> None:
    task_id = (await create(person, name="T", priority=5, status="WAITING_APPROVAL"))["id"]
    shown = await rota.ok("tasks", "show", task_id, "--json")
    sent = (await person.get(f"/api/tasks/{task_id}")).json()
    assert shown.json == sent
    # As text, because 5 and 5.0 are equal.
    assert json.dumps(shown.json) == json.dumps(sent)
    review = await rota.ok("tasks", "review", task_id, "--json")
    assert review.json == (await person.get(f"/api/tasks/{task_id}/review")).json()


async def test_descriptions_and_reasons_can_come_from_a_file_or_from_standard_input(
    rota: Terminal, person: Person, tmp_path: Path
) -> None:
    (tmp_path / "description").write_text("From a file.")
    about = ("--description", f"@{tmp_path / 'description'}", "--json")
    task = (await rota.ok("tasks", "create", "T", *about)).json["task"]
    assert task["description"] == "From a file."
    waiting = (await create(person, name="W", status="WAITING_APPROVAL"))["id"]
    review = (await rota.ok("tasks", "review", waiting, "--json")).json["review"]
    decision = ("--review", str(review["number"]), "--digest", review["digest"])
    typed = {"typed": "From standard input."}
    await rota.ok("tasks", "reject", waiting, *decision, "--reason", "-", **typed)
    [past] = (await person.get(f"/api/tasks/{waiting}/review")).json()["review"]["history"]
    assert past["reason"] == "From standard input."
