"""The receipt of a task, and its check without the service."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rota.platform.canonical import canonical_json, digest
from rota.platform.signatures import Signer
from rota.receipts import document
from tests.assertions import assert_error
from tests.audit.world import rota
from tests.runs.runner import Runner
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person

Json = dict[str, Any]


async def receipt_of(person: Person, task: Json) -> Json:
    response = await person.get(f"/api/tasks/{task['id']}/receipt")
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


@pytest.fixture
async def task(runner: Runner, scripted: Scripted, person: Person) -> Json:
    """A task that a person let call a tool."""
    script = await scripted.script(calls(("desk__send", {"ref": "receipt"})), says("Sent."))
    begun = await runner.begin(person, "careful", script)
    await runner.waiting(person, begun, "tool")
    await runner.approve(person, begun)
    return await runner.until(person, begun, "COMPLETED")


async def test_a_receipt_has_the_decisions_the_calls_the_money_and_the_trail(
    runner: Runner, person: Person, task: Json
) -> None:
    receipt = (await receipt_of(person, task))["receipt"]
    assert (receipt["task"], receipt["status"]) == (task["id"], "COMPLETED")
    [decision] = receipt["decisions"]
    assert (decision["gate"], decision["state"]) == ("tool", "approved")
    assert decision["decidedBy"] == f"user_{person.user_id.hex}"
    [item] = decision["items"]
    by = {name: decision[name] for name in ("via", "keyId", "ruleId")}
    assert item["decidedBy"] == by | {"userId": decision["decidedBy"]}
    assert (by["via"], by["ruleId"], item["editedBy"]) == ("key", None, None)
    assert decision["digest"] == (await runner.review(person, task))["history"][0]["digest"]
    assert [(each["kind"], each["outcome"]) for each in receipt["calls"]] == [
        ("model", "ok"),
        ("tool", "ok"),
        ("model", "ok"),
    ]
    tool = receipt["calls"][1]
    assert tool["arguments"] == digest(canonical_json({"ref": "receipt"}))
    assert tool["approved"]
    kinds = [each["kind"] for each in receipt["ledger"]]
    assert kinds == ["hold", "charge", "charge", "release"]
    assert receipt["spentMicros"] == sum(each["costMicros"] for each in receipt["calls"]) > 0
    actions = [each["action"] for each in receipt["audit"]]
    assert actions[0] == "task.created"
    assert actions[-1] == "task.completed"
    assert {"review.approved", "task.approved", "step.started", "step.finished"} <= set(actions)
    actors = {each["action"]: each["actor"] for each in receipt["audit"]}
    assert (actors["task.approved"], actors["step.started"]) == ("key", "agent")
    # No texts.
    assert "Please" not in json.dumps(receipt)
    assert "Sent." not in json.dumps(receipt)


async def test_a_decision_that_an_earlier_version_stored_is_in_the_receipt(
    runner: Runner, person: Person, task: Json
) -> None:
    user = f"user_{person.user_id.hex}"
    async with runner.service.owner() as connection:
        await connection.execute(
            """
            UPDATE reviews SET items = jsonb_set(items, '{0,decidedBy}', to_jsonb($2::text))
            WHERE account_id = $1
            """,
            person.user_id,
            user,
        )
    [decision] = (await receipt_of(person, task))["receipt"]["decisions"]
    assert decision["items"][0]["decidedBy"]["userId"] == user


async def test_a_receipt_is_checked_without_the_service(
    runner: Runner, person: Person, task: Json, tmp_path: Path
) -> None:
    answer = await receipt_of(person, task)
    published = await runner.service.http.get("/.well-known/audit-keys.json")
    (tmp_path / "keys.json").write_text(published.text)

    async def verify(text: str) -> tuple[int, str]:
        (tmp_path / "receipt.json").write_text(text)
        options = (str(tmp_path / "receipt.json"), "--keys", str(tmp_path / "keys.json"))
        result = await rota(runner.service, "receipt", "verify", *options)
        return result.exit_code, result.output

    for text in (json.dumps(answer), answer["jws"]):
        code, output = await verify(text)
        assert code == 0, output
        assert task["id"] in output
    shown = copy.deepcopy(answer)
    shown["receipt"]["spentMicros"] = 0
    code, output = await verify(json.dumps(shown))
    assert (code, "differs from the signed one" in output) == (1, True)
    protected, payload, signature = answer["jws"].split(".")
    code, output = await verify(f"{protected}.{payload[:-3]}AAA.{signature}")
    assert (code, "signature is not valid" in output) == (1, True)
    assert (await verify("{}"))[0] == 2
    (tmp_path / "keys.json").write_text("[]")
    assert (await verify(answer["jws"]))[0] == 2


def _swap(items: list[Json]) -> None:
    items[0], items[1] = items[1], items[0]


CHANGES: tuple[tuple[str, Callable[[Json], object]], ...] = (
    ("decisions", lambda r: r["decisions"][0].update(state="rejected")),
    ("calls", lambda r: r["calls"][1].update(arguments="0" * 64)),
    ("the hash of txn", lambda r: r["ledger"][1].update(spent=1)),
    ("add up", lambda r: r.update(spentMicros=1)),
    ("the hash of entry", lambda r: r["audit"][2].update(actor="operator")),
    ("the hash of entry", lambda r: r["audit"][2].update(previous="0" * 64)),
    ("in order", lambda r: _swap(r["audit"])),
    ("the head", lambda r: r["head"].update(sequence=1)),
)


async def test_a_document_that_contradicts_itself_is_not_valid(person: Person, task: Json) -> None:
    """Also if somebody signs it."""
    signer = Signer(b"0" * 32)
    receipt = (await receipt_of(person, task))["receipt"]
    assert document.check(signer.sign(document.KIND, receipt), signer.public_keys())[1] == []
    for message, change in CHANGES:
        changed = copy.deepcopy(receipt)
        change(changed)
        _, problems = document.check(signer.sign(document.KIND, changed), signer.public_keys())
        assert any(message in problem for problem in problems), (message, problems)


async def test_a_task_that_its_client_runs_has_a_receipt_too(person: Person) -> None:
    made = (await person.post("/api/tasks", {"name": "Own"})).json()["task"]
    receipt = (await receipt_of(person, made))["receipt"]
    assert (receipt["calls"], receipt["ledger"], receipt["agent"]) == ([], [], None)
    assert [each["action"] for each in receipt["audit"]] == ["task.created"]


async def test_the_receipt_of_another_account_does_not_exist(
    runner: Runner, person: Person, task: Json
) -> None:
    other = await runner.newcomer()
    assert_error(await other.get(f"/api/tasks/{task['id']}/receipt"), 404, "NOT_FOUND")
