"""Two approvers, an editor and the run in random order: only calls that were shown are made.

Hypothesis generates the order. Each one has its own account, task and tool server.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rota.agents.sync import sync
from rota.composition import Composition
from rota.dev.stack import Stack
from rota.platform.canonical import canonical_json
from rota.tasks import review_checks
from tests.runs.gated_run import GatedRun, MadeCall
from tests.runs.runner import shown
from tests.service import Person, Service
from tests.sizes import size
from tests.tasks.world import patch

CATALOG = Path(__file__).parents[1] / "mcp" / "catalog"
EXAMPLES = size(15, 2_000)
STEPS = 30

T = TypeVar("T")

who = st.integers(0, 1)
text = st.sampled_from(["one", "two", "three"])


@pytest.fixture(scope="module")
async def service(stack: Stack) -> AsyncIterator[Service]:
    async with Service.start(stack, variant="a", name="sealed_machine") as started:
        await sync(started.database_url, CATALOG)
        yield started


@dataclass
class Shown:
    """What a review shows, as the world was when its gate opened."""

    gate: str
    # The calls by item, and at a run gate the text of the task.
    calls: dict[str, MadeCall]
    name: str


class Decisions(RuleBasedStateMachine):
    service: ClassVar[Service]
    parts: ClassVar[Composition]
    event_loop: ClassVar[asyncio.AbstractEventLoop]
    # Over all examples, to show that the machine gets far enough to prove something.
    calls_made: ClassVar[int] = 0
    stale_refused: ClassVar[int] = 0

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.event_loop).result(60)

    @initialize(gated=st.booleans())
    def open(self, gated: bool) -> None:
        self.run = GatedRun(self.service, self.parts)
        self.wait(self.run.open(**({"status": "WAITING_APPROVAL"} if gated else {})))
        self.shown: dict[int, Shown] = {}
        self.seen: list[dict[str, Any] | None] = [None, None]
        self.last_body: list[tuple[str, dict[str, Any]] | None] = [None, None]
        self.approved: list[MadeCall] = []
        self.approved_name: str | None = None
        self.checked = 0
        self.changes = 0
        self.note_gate()
        if not gated:
            self.work(1, "one")
            self.work(2, "two")

    def person(self, at: int) -> Person:
        return (self.run.one, self.run.two)[at]

    def note_gate(self) -> None:
        """Remembers what the newest review shows, if it is new."""
        review = self.wait(self.run.review(self.run.editor))
        if review["state"] != "pending" or review["number"] in self.shown:
            return
        definition = self.wait(self.run.definition())
        calls = {
            item["id"]: MadeCall(
                item["serverId"], self.run.server.url, definition or "", item["arguments"]
            )
            for item in review["items"]
        }
        name = self.wait(self.run.task())["name"]
        self.shown[review["number"]] = Shown(review["gate"], calls, name)

    # The run.

    @rule(count=st.integers(1, 2), words=text)
    def work(self, count: int, words: str) -> None:
        """One step of the worker: whatever it may do now."""
        status = self.wait(self.run.status())
        if status == "PENDING":
            if self.approved_name is not None:
                assert self.wait(self.run.task())["name"] == self.approved_name
            self.wait(self.run.begin())
        elif self.run.next is not None and self.run.next.kind == "think" and status == "RUNNING":
            calls = [{"text": f"{words} {n}"} for n in range(count)]
            self.wait(self.run.answer(*calls))
            self.note_gate()
        elif self.run.next is not None:
            next_step = self.wait(self.run.begin())
            if next_step.kind == "act":
                self.wait(self.run.act())
                self.check_calls()
                self.wait(self.run.begin())
            self.note_gate()

    def check_calls(self) -> None:
        """Each call that was made was approved as it was shown, and is used up by it."""
        for made in self.run.client.made[self.checked :]:
            assert made in self.approved, f"not shown: {made}, approved: {self.approved}"
            self.approved.remove(made)
            type(self).calls_made += 1
        self.checked = len(self.run.client.made)

    @rule(count=st.integers(1, 2), words=text)
    def work_twice(self, count: int, words: str) -> None:
        self.work(count, words)
        self.work(count, words)

    # The approvers.

    @rule(at=who)
    def look(self, at: int) -> None:
        self.seen[at] = self.wait(self.run.review(self.person(at)))

    @rule(at=who, fresh=st.booleans(), edit=st.none() | st.none() | text, first_only=st.booleans())
    def approve(self, at: int, fresh: bool, edit: str | None, first_only: bool) -> None:
        if fresh:
            self.look(at)
        review = self.seen[at]
        if review is None or review["number"] is None:
            return
        body: dict[str, Any] = {"review": shown(review)}
        if review["items"] and (edit or first_only):
            decision: dict[str, Any] = {"id": review["items"][0]["id"]}
            if edit:
                decision["arguments"] = {"text": edit}
            body["decisions"] = [decision]
        self.decide(at, "approve", body, review["number"])

    @rule(at=who, words=text)
    def approve_and_work(self, at: int, words: str) -> None:
        """The ordinary course of things, so that the others have something to disturb."""
        self.approve(at, fresh=True, edit=None, first_only=False)
        self.work_twice(1, words)

    @precondition(lambda self: any(self.seen))
    @rule(at=who, resume=st.booleans())
    def reject(self, at: int, resume: bool) -> None:
        review = self.seen[at]
        if review is not None and review["number"] is not None:
            self.decide(at, "reject", {"review": shown(review), "resume": resume}, review["number"])

    def decide(self, at: int, verb: str, body: dict[str, Any], number: int) -> None:
        before = self.wait(self.run.review(self.run.editor))
        response = self.wait(self.person(at).post(f"{self.run.path}/{verb}", body))
        if response.status_code != 200:
            assert response.status_code in (400, 409), response.text
            type(self).stale_refused += response.status_code == 409
            return
        self.last_body[at] = (verb, body)
        after = response.json()["review"]
        assert after["number"] == number
        if verb == "approve":
            self.note_approval(number, before, after)

    def note_approval(self, number: int, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Remembers what this decision approved: what was shown, with its own edits."""
        seen = self.shown[number]
        if seen.gate == "run" and before["state"] == "pending":
            self.approved_name = seen.name
        decided = {item["id"] for item in before["items"] if item["decision"] is not None}
        for item in after["items"]:
            if before["number"] == number and item["id"] in decided:
                continue
            if item["decision"] == "approved":
                call = seen.calls[item["id"]]
                changed = canonical_json(item["arguments"]) != canonical_json(call.arguments)
                assert changed <= item["edited"]
                self.approved.append(
                    MadeCall(call.server_id, call.url, call.definition, item["arguments"])
                )

    @precondition(lambda self: any(self.last_body))
    @rule(at=who)
    def click_twice(self, at: int) -> None:
        """Repeats the last decision without its review, as a client with a retry does."""
        last = self.last_body[at]
        if last is None:
            return
        verb, body = last
        before = self.wait(self.run.review(self.run.editor))
        repeated = {name: value for name, value in body.items() if name != "review"}
        response = self.wait(self.person(at).post(f"{self.run.path}/{verb}", repeated))
        after = self.wait(self.run.review(self.run.editor))
        if before["number"] != body["review"]["number"]:
            # A newer review waits, or was decided: the repeated request changes nothing.
            assert after["items"] == before["items"], response.text
        elif verb == "approve" and response.status_code == 200:
            self.note_approval(after["number"], before, after)

    # The editor.

    @rule(kind=st.sampled_from(["rename", "retry", "fail", "lose", "cancel"]), name=text)
    def disturb(self, kind: str, name: str) -> None:
        if kind == "rename":
            self.wait(patch(self.run.editor, self.run.task_id, name=name))
            self.note_gate()
        elif kind == "lose":
            self.run.client.lost = 1
        elif kind == "fail" and self.run.next is not None:
            self.wait(self.run.fail())
            self.retry()
        elif kind == "retry":
            self.retry()
        elif kind == "cancel" and self.changes > 3:
            # Rare, because nothing happens afterwards.
            self.wait(patch(self.run.editor, self.run.task_id, status="CANCELLED"))

    def retry(self) -> None:
        response = self.wait(self.run.editor.post(f"{self.run.path}/retry"))
        if response.status_code == 200:
            self.run.run += 1
            self.run.next = None
            self.note_gate()

    @rule(kind=st.sampled_from(["replace", "move", "redefine"]))
    def change_server(self, kind: str) -> None:
        self.changes += 1
        if kind == "replace":
            self.wait(self.run.replace_server(f"https://replaced.example/{self.changes}"))
        elif kind == "move":
            self.wait(self.run.move_server(f"https://moved.example/{self.changes}"))
        else:
            self.wait(self.run.redefine(f"Sends, version {self.changes}."))

    def teardown(self) -> None:
        self.check_calls()


async def test_only_calls_that_were_shown_are_made(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, a repeated click can come later than that.
    monkeypatch.setattr(review_checks, "REPEAT_TIME", timedelta(hours=1))
    profile = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=EXAMPLES <= 40,
        suppress_health_check=list(HealthCheck),
    )
    async with Composition(service.settings, pool_size=4) as parts:
        Decisions.service, Decisions.parts = service, parts
        Decisions.event_loop = asyncio.get_running_loop()
        await asyncio.to_thread(run_state_machine_as_test, Decisions, settings=profile)
    print(f"{EXAMPLES} interleavings, {Decisions.calls_made} calls made as shown,")
    print(f"{Decisions.stale_refused} stale or conflicting decisions refused")
    assert Decisions.calls_made > EXAMPLES / 10
    assert Decisions.stale_refused > EXAMPLES / 10
