"""Runs from the command line: the text of a model while it is written, gates, forks."""

from collections.abc import AsyncIterator

import pytest

from rota.agents.sync import sync
from rota.cli.exits import ExitCode
from rota.dev.stack import Stack
from tests.cli.conftest import url_of
from tests.cli.terminal import Done, Terminal
from tests.policies.world import Office
from tests.runs.runner import CATALOG, Runner
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person, Service


@pytest.fixture(scope="module")
async def scripted() -> AsyncIterator[Scripted]:
    async with Scripted.start() as started:
        yield started


@pytest.fixture(scope="module")
async def runner(
    stack: Stack, scripted: Scripted, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runner]:
    log = tmp_path_factory.mktemp("worker") / "log"
    async with Runner.start(stack, scripted, "cli_runs", log) as started:
        await sync(started.service.database_url, CATALOG)
        yield started


@pytest.fixture(scope="module")
async def service(runner: Runner) -> AsyncIterator[Service]:
    """In a process of its own, so its logs are not in the output of the commands."""
    async with runner.service.process() as started:
        yield started


@pytest.fixture
async def rota(runner: Runner, service: Service, terminal: Terminal) -> Terminal:
    person = await runner.service.sign_in()
    terminal.variables = {"ROTA_URL": url_of(service), "ROTA_API_KEY": person.token}
    return terminal


async def test_a_followed_task_shows_its_text_once_and_its_tools(
    rota: Terminal, scripted: Scripted
) -> None:
    prose = "Line one with an ü.\n" * 20 + "The end."
    script = await scripted.script(
        calls(("desk__lookup", {"ref": "live"}), text="I look it up."), says(prose)
    )
    command = ("tasks", "create", "T", "--agent", "writer", "--input", f"Please. {script}", "-f")
    done = await rota.ok(*command)
    assert done.out == f"{prose}\n"
    task_id, *lines, outcome = done.err.splitlines()
    # Text comes by another way than events, so it can be a little ahead of them.
    events = [line for line in lines if line.startswith("· ")]
    assert events == ["· created", "· started", "· calls desk/lookup", "· completed"]
    text = [line for line in lines if line not in events]
    assert "".join(text) == "I look it up." + prose.replace("\n", "")
    assert outcome.startswith(f"COMPLETED · {task_id} · $")
    timeline = await rota.ok("tasks", "show", task_id, "--timeline")
    assert "lookup" in timeline.out
    assert len((await rota.ok("tasks", "show", task_id, "--timeline", "--json")).json["steps"]) == 3


async def test_a_run_that_waits_is_approved_and_forked(rota: Terminal, scripted: Scripted) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "first"})), says("Sent."))
    about = ("--agent", "careful", "--input", f"Please. {script}")
    stopped = await rota("tasks", "create", "T", *about, "--until-review")
    assert stopped.code == ExitCode.REVIEW_WAITS
    task_id = stopped.err.splitlines()[0]
    shown = await rota.ok("tasks", "review", task_id)
    assert '"ref": "first"' in shown.out
    review = (await rota.ok("tasks", "review", task_id, "--json")).json["review"]
    decision = ("--review", str(review["number"]), "--digest", review["digest"])
    await rota.ok("tasks", "approve", task_id, *decision)
    done = await rota.ok("tasks", "follow", task_id)
    assert done.out == "Sent.\n"
    assert "To decide: rota inbox" in done.err
    options = await rota.ok("tasks", "fork", task_id, "--options")
    assert "Steps" in options.out
    assert (await rota.ok("tasks", "fork", task_id, "--options", "--json")).json["fork"]["steps"]
    quote = await rota.ok("tasks", "fork", task_id, "--step", "0", "--dry-run")
    assert "Costs at most" in quote.out
    fork = (await rota.ok("tasks", "fork", task_id, "--step", "0", "--json")).json["task"]
    assert fork["forkedFrom"]["taskId"] == task_id


async def test_an_approval_can_have_other_arguments(rota: Terminal, scripted: Scripted) -> None:
    script = await scripted.script(
        calls(("desk__send", {"ref": "first"}), ("desk__send", {"ref": "second"})), says("Sent.")
    )
    about = ("--agent", "careful", "--input", f"Please. {script}")
    task_id = (await rota("tasks", "create", "T", *about, "--until-review")).err.splitlines()[0]
    review = (await rota.ok("tasks", "review", task_id, "--json")).json["review"]
    decision = ("--review", str(review["number"]), "--digest", review["digest"])
    edit = ("--arguments", '{"ref": "third"}')
    _, second = (item["id"] for item in review["items"])
    for wrong, expected in (
        (edit, "2 items wait. Choose one with --item"),
        ((*edit, "--item", "call_9"), "call_9 does not wait."),
        (("--item", second), "--item needs --arguments."),
        (("--arguments", "ref"), "--arguments is not valid JSON"),
    ):
        refused = await rota("tasks", "approve", task_id, *decision, *wrong)
        assert refused.code == ExitCode.USAGE
        assert expected in " ".join(refused.err.split())
    await rota.ok("tasks", "approve", task_id, *decision, *edit, "--item", second)
    await rota.ok("tasks", "follow", task_id)
    steps = (await rota.ok("tasks", "show", task_id, "--timeline", "--json")).json["steps"]
    sent = [step["arguments"]["ref"] for step in steps if step["kind"] == "tool"]
    assert sent == ["first", "third"]


async def test_other_arguments_that_a_second_person_has_to_approve_are_not_a_success(
    rota: Terminal, runner: Runner, scripted: Scripted
) -> None:
    office = await Office.open(runner.service)
    await office.require_second_person()
    script = await scripted.script(calls(("desk__send", {"ref": "first"})), says("Sent."))
    task = await runner.begin(office.owner, "careful", script)
    await runner.until(office.owner, task, "WAITING_APPROVAL")
    one, other = office.approvers
    account = {"ROTA_ACCOUNT": office.company.id}

    async def approve(by: Person, *edit: str) -> Done:
        rota.variables |= {"ROTA_API_KEY": by.token, **account}
        review = (await rota.ok("tasks", "review", task["id"], "--json")).json["review"]
        decision = ("--review", str(review["number"]), "--digest", review["digest"])
        return await rota("tasks", "approve", task["id"], *decision, *edit)

    edited = await approve(one, "--arguments", '{"ref": "second"}')
    assert edited.code == ExitCode.NOT_APPROVED
    assert edited.out == f"{task['id']} is WAITING_APPROVAL.\n"
    assert "Nothing is approved" in edited.err
    assert "review 2" in edited.err
    assert (await approve(other)).code == ExitCode.OK
    await runner.until(office.owner, task, "COMPLETED")


async def test_a_followed_task_says_which_calls_failed_and_the_timeline_why(
    rota: Terminal, scripted: Scripted
) -> None:
    script = await scripted.script(calls(("desk__lookup", {})), says("I could not look it up."))
    command = ("tasks", "create", "T", "--agent", "writer", "--input", f"Please. {script}", "-f")
    done = await rota.ok(*command)
    assert "· desk/lookup failed" in done.err.splitlines()
    task_id = done.err.splitlines()[0]
    assert done.err.splitlines()[-1].endswith(f"rota tasks show {task_id} --timeline")
    timeline = await rota.ok("tasks", "show", task_id, "--timeline")
    assert "Step 1, lookup: " in timeline.out


async def test_an_interrupted_follow_leaves_the_task_running(
    rota: Terminal, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = await scripted.script(calls(("desk__send", {"ref": "first"})), says("Sent."))
    about = ("--agent", "careful", "--input", f"Please. {script}", "--json")
    task_id = (await rota.ok("tasks", "create", "T", *about)).json["task"]["id"]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rota.cli.follow.Display.show", interrupt)
    done = await rota("tasks", "follow", task_id)
    assert done.code == ExitCode.INTERRUPTED
    assert done.err == f"The task continues. To follow it again: rota tasks follow {task_id}\n"
    await rota.ok("tasks", "cancel", task_id)
