"""Random histories of creating, editing, delegating and approving.

Nobody approves what they shaped. A model in plain Python knows who shaped what, and each approval
must be refused if and only if the model says so.
"""

import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from rota.agents.sync import sync
from rota.composition import Composition
from rota.dev.stack import Stack
from rota.platform.ids import from_wire
from tests.policies.conftest import CATALOG
from tests.policies.world import Office, OfficeRun, Seat, because, review_of
from tests.runs.runner import shown
from tests.service import Service
from tests.sizes import size
from tests.tasks.world import patch

HISTORIES = size(5, 1_000)
OPERATIONS = 40
# A company has so many histories, so that its rate limit and its credits are not reached.
PER_COMPANY = 5
WAITING = {"status": "WAITING_APPROVAL"}
PART = {"agent": "operator", "name": "Part", "input": "Do it."}


@pytest.fixture(scope="module", params=["a", "b"])
async def service(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Service]:
    name = f"histories_{request.param}"
    async with Service.start(stack, variant=request.param, name=name) as started:
        await sync(started.database_url, CATALOG)
        yield started


@dataclass
class Known:
    """A task, and who shaped it, as the model knows it."""

    task: dict[str, Any]
    agent: str | None = None
    parent: "Known | None" = None
    origin: "Known | None" = None
    shapers: set[UUID] = field(default_factory=set)
    rule_makers: set[UUID] = field(default_factory=set)
    run: int = 1
    # Whether a run of the parent delegated it, and still waits for it.
    delegated: bool = False

    @property
    def chain(self) -> "Iterator[Known]":
        yield self
        for above in (self.parent, self.origin):
            if above is not None:
                yield from above.chain

    @property
    def all_shapers(self) -> set[UUID]:
        return {user for each in self.chain for user in each.shapers}

    @property
    def all_rule_makers(self) -> set[UUID]:
        return {user for each in self.chain for user in each.rule_makers}


class History:
    def __init__(self, run: OfficeRun, people: list[list[Seat]], chance: random.Random) -> None:
        self.run = run
        # Each person, with a session and perhaps an API key.
        self.people = people
        self.chance = chance
        self.tasks: list[Known] = []
        self.approvals: set[tuple[str, UUID]] = set()
        # The events of the uses of rules.
        self.uses_seen: set[str] = set()
        self.refused = 0

    def someone(self) -> Seat:
        return self.chance.choice(self.chance.choice(self.people))

    def by_session(self) -> Seat:
        return self.chance.choice(self.people)[0]

    async def status(self, known: Known) -> str:
        answer = await self.run.office.owner.get(f"/api/tasks/{known.task['id']}")
        found: str = answer.json()["task"]["status"]
        return found

    def add(self, known: Known) -> None:
        self.tasks.append(known)

    async def step(self) -> None:
        if not self.tasks:
            return await self.delegate()
        operation = self.chance.choices(
            (self.create, self.edit, self.work, self.approve, self.instruct, self.retry),
            (3, 3, 8, 12, 1, 2),
        )[0]
        if self.chance.random() < 0.2:
            operation = self.chance.choice((self.fork, self.accept, self.rule, self.schedule))
        await operation()
        return None

    async def create(self) -> None:
        by, parent = self.someone(), None
        agent = self.chance.choice((None, "foreman", "operator"))
        body = WAITING if self.chance.random() < 0.5 else {}
        if self.tasks and self.chance.random() < 0.4:
            parent = self.chance.choice(self.tasks)
            body = body | {"parentTaskId": parent.task["id"]}
        if agent is not None:
            body = body | {"agent": agent}
        answer = await by.post("/api/tasks", {"name": "A task", **body})
        if answer.status_code == 201:
            self.add(Known(answer.json()["task"], agent, parent, shapers={by.user_id}))
        else:
            # A parent that has ended or is too deep, or too little money below it.
            assert answer.status_code in (400, 402, 409), answer.text

    async def delegate(self) -> None:
        """A run delegates, and goes on with the result of a subtask in which somebody answered."""
        creator, answering, run = self.someone(), self.someone(), self.run
        answer = await creator.post("/api/tasks", {"name": "A task", "agent": "foreman"})
        assert answer.status_code == 201, answer.text
        known = Known(answer.json()["task"], "foreman", shapers={creator.user_id})
        self.add(known)
        run.task_id, run.run = known.task["id"], known.run
        await run.begin()
        await run.answer(PART, tool="delegate")
        await run.act()
        await self.find_subtasks(known)
        child = self.tasks[-1]
        run.task_id = child.task["id"]
        await run.begin()
        await run.answer({"question": "How?"}, tool="ask_person")
        await self.decide(answering, child)
        await run.begin()
        await run.complete("Done.")
        run.task_id = known.task["id"]
        await run.begin()
        await self.hand_up(known)
        await self.answer(known)
        await self.decide(answering, known)

    async def edit(self) -> None:
        by, known = self.someone(), self.chance.choice(self.tasks)
        if self.chance.random() < 0.3:
            assert (await patch(by, known.task["id"], priority=self.chance.random())).is_success
            return
        text = str(self.chance.random())
        answer = await patch(by, known.task["id"], description=text)
        if answer.status_code == 200:
            known.shapers.add(by.user_id)
        else:
            assert answer.status_code == 409, answer.text

    async def work(self) -> None:
        """The worker does what it can for a task that the service runs."""
        hosted = [known for known in self.tasks if known.agent]
        if not hosted:
            return
        known, run = self.chance.choice(hosted), self.run
        run.task_id, run.run = known.task["id"], known.run
        status = await self.status(known)
        if status == "PENDING" or status == "RUNNING":
            await run.begin()
        await self.hand_up(known)
        if await self.status(known) != "RUNNING" or run.next is None:
            return
        if run.next.kind == "think":
            await self.answer(known)
        elif run.next.kind == "act":
            await run.act()
            await self.hand_up(known)
            await self.find_subtasks(known)
            await self.find_rules(known)

    async def answer(self, known: Known) -> None:
        """What the model says. It delegates, asks, calls a tool or fails."""
        run, choice = self.run, self.chance.random()
        if known.agent == "foreman" and choice < 0.3:
            await run.answer(PART, tool="delegate")
        elif choice < 0.4:
            await run.answer({"question": "How?"}, tool="ask_person")
        elif choice < 0.5:
            await run.fail()
        elif choice < 0.6:
            await run.complete("Done.")
        else:
            texts = self.chance.choices(("one", "two"), k=self.chance.choice((1, 1, 2)))
            await run.answer(*[{"text": text} for text in texts])

    async def find_subtasks(self, known: Known) -> None:
        found = await self.run.office.owner.get(
            "/api/tasks", params={"parentTaskId": known.task["id"]}
        )
        seen = {each.task["id"] for each in self.tasks}
        for task in found.json()["tasks"]:
            if task["id"] not in seen:
                self.add(Known(task, task["assignedAgent"], parent=known, delegated=True))

    async def hand_up(self, known: Known) -> None:
        """Whoever shaped a subtask that this task delegated has shaped this one too, as soon as its
        agent gets the result."""
        rows = await self.run.tool_rows()
        finished = {row.child_task_id for row in rows if row.state == "finished"}
        for child in self.tasks:
            if child.delegated and from_wire("task", child.task["id"]) in finished:
                child.delegated = False
                known.shapers |= child.shapers
                known.rule_makers |= child.rule_makers

    async def find_rules(self, known: Known) -> None:
        """A rule stands for its maker, who must not have shaped what it approved.

        A review of other calls also shows what a rule would approve. Only the event says that it
        did, when the call started.
        """
        found = await self.run.office.owner.get(
            "/api/events",
            params={"type": "rule.used", "limit": "100"},
            headers={"Accept": "application/json"},
        )
        assert found.json()["total"] <= 100
        for event in found.json()["events"]:
            if event["taskId"] == known.task["id"] and event["id"] not in self.uses_seen:
                maker = self.run.rule_makers[event["data"]["ruleId"]]
                assert maker not in known.all_shapers
                assert maker != self.run.accepted_by
                self.uses_seen.add(event["id"])
                known.rule_makers.add(maker)

    async def decisions(self, known: Known) -> list[tuple[str, dict[str, Any]]]:
        """Everything that was approved for a task, apart from answers, and by whom."""
        review = await review_of(self.run.office.owner, known.task)
        found = []
        for past in [review, *review["history"]]:
            found += [
                (f"{known.task['id']}/{item['id']}", item["decidedBy"])
                for item in past["items"]
                if item["decision"] == "approved" and item["tool"] != "ask_person"
            ]
            if past["state"] == "approved" and not past["items"] and past.get("decidedBy"):
                found.append((f"{known.task['id']}/run", past["decidedBy"]))
        return found

    async def approve(self) -> None:
        await self.decide(self.someone(), self.chance.choice(self.tasks))

    async def decide(self, by: Seat, known: Known) -> None:
        review = await review_of(by, known.task)
        if review["state"] != "pending":
            return
        pending = [item for item in review["items"] if item["decision"] is None]
        body: dict[str, Any] = {"review": shown(review)}
        named, changes = pending, False
        if pending and self.chance.random() < 0.6:
            named = [self.chance.choice(pending)]
            decision: dict[str, Any] = {"id": named[0]["id"]}
            if named[0]["tool"] == "ask_person":
                decision["arguments"] = {"question": "How?", "answer": "Well."}
            elif self.chance.random() < 0.4:
                decision["arguments"] = {"text": self.chance.choice(("one", "two", "three"))}
                changes = decision["arguments"] != named[0]["arguments"]
            body["decisions"] = [decision]
        calls = [item for item in named if item["tool"] != "ask_person"]
        must_refuse = bool(calls or not pending) and (
            by.user_id in known.all_shapers | known.all_rule_makers
            or (bool(calls) and by.user_id == self.run.accepted_by)
        )
        answer = await by.post(f"/api/tasks/{known.task['id']}/approve", body)
        if changes:
            assert answer.status_code == 200, answer.text
            assert answer.json()["review"]["number"] == review["number"] + 1
            known.shapers.add(by.user_id)
        elif must_refuse:
            because(answer)
            self.refused += 1
        elif not all(item["definitionAccepted"] for item in calls):
            assert answer.status_code == 409, answer.text
        else:
            assert answer.status_code == 200, answer.text
            if calls or not pending:
                self.approvals.add((known.task["id"], by.user_id))
            if any(item["tool"] == "ask_person" for item in named):
                known.shapers.add(by.user_id)

    async def instruct(self) -> None:
        by, known = self.someone(), self.chance.choice(self.tasks)
        if (await review_of(by, known.task))["state"] != "pending":
            return  # A repeated rejection succeeds, and the agent does not read its reason.
        body = {"reason": "Do it like this.", "resume": True}
        answer = await by.post(f"/api/tasks/{known.task['id']}/reject", body)
        if answer.status_code == 200:
            known.shapers.add(by.user_id)

    async def retry(self) -> None:
        by, known = self.someone(), self.chance.choice(self.tasks)
        if known.agent is None and await self.status(known) in ("PENDING", "RUNNING"):
            await patch(self.run.office.owner, known.task["id"], status="FAILED")
        start_at = self.chance.choice(("start", "failure"))
        answer = await by.post(f"/api/tasks/{known.task['id']}/retry", {"from": start_at})
        if answer.status_code == 200:
            known.run += 1
            known.shapers.add(by.user_id)
            if known.agent is None:
                assert (await patch(by, known.task["id"], **WAITING)).status_code == 200

    async def fork(self) -> None:
        by, known = self.someone(), self.chance.choice(self.tasks)
        answer = await by.post(f"/api/tasks/{known.task['id']}/fork", {"fromStep": 0})
        if answer.status_code == 201:
            fork = answer.json()["task"]
            self.add(Known(fork, known.agent, origin=known, shapers={by.user_id}))

    async def accept(self) -> None:
        await self.run.accept_as(self.by_session(), f"Sends {self.chance.random()}.")

    async def rule(self) -> None:
        by, run = self.by_session(), self.run
        body = {
            "serverId": f"mcp_{run.server.id.hex}",
            "tool": "send",
            "agent": self.chance.choice(("operator", "foreman")),
            "arguments": {"text": {"enum": ["one"]}},
            "expiresAt": "2099-01-31T12:00:00Z",
            "maxUses": 2,
        }
        answer = await by.post("/api/rules", body)
        if by.user_id == run.accepted_by:
            assert because(answer) == ["acceptedTool"]
        else:
            assert answer.status_code == 201, answer.text
            run.rule_makers[answer.json()["rule"]["id"]] = by.user_id

    async def schedule(self) -> None:
        one, two, three = (self.someone() for _ in range(3))
        task = {"name": "t", **WAITING}
        body = {"name": "s", "cron": "0 9 * * *", "timeZone": "UTC", "task": task}
        made = (await one.post("/api/schedules", body)).json()["schedule"]
        path = f"/api/schedules/{made['id']}"
        changed = {"task": task | {"input": str(self.chance.random())}}
        assert (await two.request("PATCH", path, json=changed)).status_code == 200
        created = await three.post(f"{path}/run")
        assert created.status_code == 201, created.text
        users = {one.user_id, two.user_id, three.user_id}
        self.add(Known(created.json()["task"], shapers=users))

    async def check(self) -> None:
        """Every approval that is stored is one that the model has allowed."""
        for known in self.tasks:
            for _, by in await self.decisions(known):
                if by["via"] != "rule":
                    user_id = from_wire("user", by["userId"])
                    assert (known.task["id"], user_id) in self.approvals


async def test_nobody_approves_what_they_shaped(service: Service) -> None:
    approvals = refused = rules = 0
    run: OfficeRun | None = None
    people: list[list[Seat]] = []
    async with Composition(service.settings, pool_size=4) as parts:
        for number in range(HISTORIES):
            if number % PER_COMPANY == 0:
                office = await Office.open(service)
                admin = await office.join(role="admin")
                people = [[seat] for seat in (office.owner, admin, *office.approvers)]
                for seats in people[:2]:
                    seats.append(await seats[0].key())
                await office.require_second_person()
                run = OfficeRun(service, parts, office)
                await run.connect()
            assert run is not None
            history = History(run, people, random.Random(f"{service.variant}{number}"))
            try:
                for _ in range(OPERATIONS):
                    await history.step()
                await history.check()
            except Exception as error:
                error.add_note(f"history {number}")
                raise
            approvals += len(history.approvals)
            refused += history.refused
            rules += len(history.uses_seen)
    print(f"{HISTORIES} histories: {approvals} approvals, {refused} refused, {rules} by rules")
    # The histories must be about something.
    assert min(approvals, refused) >= HISTORIES
