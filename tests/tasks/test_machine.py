"""Compares tasks with a model in plain Python: statuses, totals, order, pages and events.

Hypothesis generates requests of several clients of one account, and each response must match the
model. Each sequence has its own account.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID, uuid4

import httpx
import psycopg
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rota.auth import secrets
from rota.auth.caller import ALL_SCOPES
from rota.platform import ids
from tests.service import Service
from tests.sizes import size
from tests.tasks.world import AGENT, NEW_ACCOUNT, STATUSES

EXAMPLES = size(10, 2_000)
STEPS = 30
CLIENTS = 3
OTHER_AGENT = "meeting-scribe"
OPEN = ("PENDING", "RUNNING", "WAITING_APPROVAL")
ENDED = ("COMPLETED", "FAILED", "CANCELLED")
# The statuses that a client can set on an external task with PATCH, besides CANCELLED.
PATCHABLE = {
    "PENDING": ("RUNNING", "WAITING_APPROVAL", "COMPLETED", "FAILED"),
    "RUNNING": ("WAITING_APPROVAL", "COMPLETED", "FAILED"),
}
EVENT_OF = {
    "RUNNING": "task.started",
    "WAITING_APPROVAL": "task.waiting_approval",
    "COMPLETED": "task.completed",
    "FAILED": "task.failed",
    "CANCELLED": "task.cancelled",
}

number = st.integers(0, 10_000)
status = st.sampled_from(STATUSES)
agent = st.sampled_from([None, None, AGENT, OTHER_AGENT])
project = st.sampled_from([None, None, "north", "south"])
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
# A name needs a visible character. An empty one stands for no name.
visible = st.just("") | text.map(lambda generated: f"n{generated}")


@dataclass
class Known:
    id: str
    status: str
    agent: str | None
    project: str | None
    parent: "Known | None"
    hosted: bool
    depth: int
    name: str = "A task"
    output: str | None = None
    actions: list[str] = field(default_factory=list)
    run: int = 1
    reviews: list[str] = field(default_factory=list)
    # Whether the newest rejection let the task continue.
    resumed: bool = False
    # The name that was approved at the run gate.
    approved: str | None = None

    @property
    def frozen(self) -> bool:
        """Whether name and description are what a person decides about, or has approved."""
        waits = self.status == "WAITING_APPROVAL"
        after_gate = self.status == "PENDING" and self.approved is not None
        return self.hosted and (waits or after_gate)

    def shown(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "status": self.status,
            "assignedAgent": self.agent,
            "projectId": self.project,
            "parentTaskId": self.parent.id if self.parent else None,
            "name": self.name,
            "output": self.output,
            "metadata": {"actions": self.actions},
        }

    def below(self, top: "Known") -> bool:
        return self.parent is not None and (self.parent is top or self.parent.below(top))


class Board(RuleBasedStateMachine):
    """The model, with the service that it is compared to."""

    base_url: ClassVar[str]
    owner: ClassVar[Any]
    pool: ClassVar[httpx.Client]

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[Known] = []
        self.events: list[tuple[str, str]] = []

    @initialize()
    def open_account(self) -> None:
        self.account_id: UUID = ids.new_uuid()
        self.keys = [secrets.new_secret() for _ in range(CLIENTS)]
        self.owner.execute(
            NEW_ACCOUNT,
            (
                self.account_id,
                "enterprise",
                [uuid4() for _ in self.keys],
                [secrets.hash_of(key) for key in self.keys],
                list(ALL_SCOPES),
            ),
        )

    def call(self, who: int, method: str, path: str, expected: int, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.keys[who % CLIENTS]}"}
        response = self.pool.request(method, f"/api/tasks{path}", headers=headers, json=body)
        assert response.status_code == expected, f"{method} {path} {body}: {response.text}"
        return response.json()

    def matches(self, response: Any, task: Known) -> None:
        shown = response["task"]
        assert {name: shown[name] for name in task.shown()} == task.shown()
        assert shown["usage"]["run"] == task.run
        assert (shown["finishedAt"] is not None) == (task.status in ENDED)

    def newest_review(self, who: int, task: Known) -> dict[str, Any] | None:
        """What a decision names, as the service shows it."""
        review = self.call(who, "GET", f"/{task.id}/review", 200)["review"]
        assert [past["state"] for past in reversed(review["history"])] == [
            state for state in task.reviews if state != "pending"
        ]
        assert review["number"] == (len(task.reviews) or None)
        return {name: review[name] for name in ("number", "digest")} if task.reviews else None

    def pick(self, at: int) -> Known:
        return self.tasks[at % len(self.tasks)]

    def change_status(self, task: Known, target: str, event: str) -> None:
        task.status = target
        self.events.append((event, task.id))
        if target == "WAITING_APPROVAL":
            task.reviews.append("pending")

    def cancel_below(self, top: Known) -> None:
        for task in self.tasks:
            if task.below(top) and task.status in OPEN:
                self.cancel(task)

    def cancel(self, task: Known) -> None:
        if task.status == "WAITING_APPROVAL":
            task.reviews[-1] = "cancelled"
        self.change_status(task, "CANCELLED", "task.cancelled")

    @rule(
        who=number,
        status=st.sampled_from(["PENDING", *STATUSES]),
        agent=agent,
        project=project,
        parent=st.none() | number,
    )
    def create(
        self, who: int, status: str, agent: str | None, project: str | None, parent: int | None
    ) -> None:
        above = self.pick(parent) if parent is not None and self.tasks else None
        body = {"name": "A task", "status": status, "projectId": project}
        body |= {"agent": agent, "parentTaskId": above.id if above else None}
        if above and above.status in ENDED:
            self.call(who, "POST", "", 409, body)
            return
        if above and above.depth == 7:
            self.call(who, "POST", "", 400, body)
            return
        response = self.call(who, "POST", "", 201, body)
        hosted = agent is not None and status in ("PENDING", "WAITING_APPROVAL")
        task = Known(
            response["task"]["id"],
            status,
            agent,
            project,
            above,
            hosted,
            depth=above.depth + 1 if above else 0,
            reviews=["pending"] if status == "WAITING_APPROVAL" else [],
        )
        self.tasks.append(task)
        self.events.append(("task.created", task.id))
        if status != "PENDING":
            self.events.append((EVENT_OF[status], task.id))
        self.matches(response, task)

    @precondition(lambda self: self.tasks)
    @rule(who=number, at=number, wanted=status)
    def patch_status(self, who: int, at: int, wanted: str) -> None:
        task = self.pick(at)
        patchable = () if task.hosted else PATCHABLE.get(task.status, ())
        body = {"status": wanted}
        if wanted == task.status:
            pass
        elif wanted == "CANCELLED" and task.status in OPEN:
            self.cancel(task)
            self.cancel_below(task)
        elif wanted in patchable:
            self.change_status(task, wanted, EVENT_OF[wanted])
        else:
            self.call(who, "PATCH", f"/{task.id}", 409, body)
            return
        self.matches(self.call(who, "PATCH", f"/{task.id}", 200, body), task)

    @precondition(lambda self: self.tasks)
    @rule(who=number, at=number, name=visible, logs=st.none() | text, action=st.none() | text)
    def patch_texts(
        self, who: int, at: int, name: str, logs: str | None, action: str | None
    ) -> None:
        task = self.pick(at)
        actions = [action] if action is not None else None
        body = {"name": name or None, "logs": logs, "actions": actions}
        renamed = bool(name) and name != task.name
        if task.hosted and (logs is not None or (renamed and task.frozen)):
            self.call(who, "PATCH", f"/{task.id}", 409, body)
            return
        if task.status == "WAITING_APPROVAL" and (renamed or logs):
            task.reviews[-1] = "cancelled"
            task.reviews.append("pending")
        before = task.shown()
        task.name = name or task.name
        if logs is not None:
            task.output = (task.output or "") + logs
        task.actions = [*task.actions, *(actions or [])]
        if task.shown() != before:
            self.events.append(("task.updated", task.id))
        self.matches(self.call(who, "PATCH", f"/{task.id}", 200, body), task)

    @precondition(lambda self: self.tasks)
    @rule(who=number, at=number)
    def approve(self, who: int, at: int) -> None:
        task = self.pick(at)
        body = {"review": self.newest_review(who, task)}
        if task.status == "WAITING_APPROVAL":
            task.reviews[-1] = "approved"
            if task.hosted:
                task.approved = task.name
            self.change_status(task, "PENDING" if task.hosted else "RUNNING", "task.approved")
        elif task.reviews[-1:] != ["approved"]:
            self.call(who, "POST", f"/{task.id}/approve", 409, body)
            return
        response = self.call(who, "POST", f"/{task.id}/approve", 200, body)
        self.matches(response, task)
        assert response["review"]["state"] == "approved"

    @precondition(lambda self: self.tasks)
    @rule(who=number, at=number, resume=st.booleans())
    def reject(self, who: int, at: int, resume: bool) -> None:
        task = self.pick(at)
        body = {"reason": "No.", "resume": resume, "review": self.newest_review(who, task)}
        if task.status == "WAITING_APPROVAL" and not (resume and task.hosted):
            task.reviews[-1] = "rejected"
            task.resumed = resume
            self.change_status(task, "RUNNING" if resume else "CANCELLED", "task.rejected")
            if not resume:
                self.events.append(("task.cancelled", task.id))
                self.cancel_below(task)
        elif task.reviews[-1:] != ["rejected"] or resume != task.resumed:
            self.call(who, "POST", f"/{task.id}/reject", 409, body)
            return
        response = self.call(who, "POST", f"/{task.id}/reject", 200, body)
        self.matches(response, task)
        assert response["review"]["state"] == "rejected"

    @precondition(lambda self: self.tasks)
    @rule(who=number, at=number)
    def retry(self, who: int, at: int) -> None:
        task = self.pick(at)
        orphan = task.parent is not None and task.parent.status == "CANCELLED"
        if task.status != "FAILED" or orphan:
            self.call(who, "POST", f"/{task.id}/retry", 409)
            return
        task.run += 1
        # From the start, every gate opens again.
        gated = task.approved is not None
        self.change_status(task, "WAITING_APPROVAL" if gated else "PENDING", "task.retried")
        if gated:
            self.events.append(("task.waiting_approval", task.id))
        self.matches(self.call(who, "POST", f"/{task.id}/retry", 200), task)

    @rule(
        who=number,
        status=st.none() | status,
        agent=agent,
        project=project,
        parent=st.none() | number,
        limit=st.integers(1, 4) | st.just(100),
        offset=st.integers(0, 12),
    )
    def list_page(
        self,
        who: int,
        status: str | None,
        agent: str | None,
        project: str | None,
        parent: int | None,
        limit: int,
        offset: int,
    ) -> None:
        above = self.pick(parent) if parent is not None and self.tasks else None
        wanted = {"status": status, "agent": agent, "projectId": project}
        wanted |= {"parentTaskId": above.id if above else None}
        query = {name: value for name, value in wanted.items() if value is not None}
        path = str(httpx.URL("", params={**query, "limit": limit, "offset": offset}))
        response = self.call(who, "GET", path, 200)
        matching = [
            task
            for task in reversed(self.tasks)
            if status in (None, task.status)
            and agent in (None, task.agent)
            and project in (None, task.project)
            and above in (None, task.parent)
        ]
        assert response["total"] == len(matching)
        page = matching[offset : offset + limit]
        assert [task["id"] for task in response["tasks"]] == [task.id for task in page]
        for shown, task in zip(response["tasks"], page, strict=True):
            self.matches({"task": shown}, task)

    def teardown(self) -> None:
        rows = self.owner.execute(
            "SELECT sequence, type, task_id FROM events WHERE account_id = $1 ORDER BY sequence",
            (self.account_id,),
        ).fetchall()
        stored = [(kind, ids.to_wire("task", task_id)) for _, kind, task_id in rows]
        assert stored == self.events
        assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
        for status in STATUSES:
            total = self.call(0, "GET", f"?status={status}&limit=1", 200)["total"]
            assert total == sum(task.status == status for task in self.tasks)


async def test_tasks_match_the_model_for_any_sequence_of_requests(
    board_a: Service, process: Service
) -> None:
    profile = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=EXAMPLES <= 25,
        suppress_health_check=list(HealthCheck),
    )
    admin = board_a.stack.endpoints.admin_database_url
    assert admin is not None
    url = admin.rpartition("/")[0] + "/" + board_a.database_url.rpartition("/")[2]

    def compare(base_url: str) -> None:
        with (
            psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as owner,
            httpx.Client(base_url=base_url, timeout=30) as pool,
        ):
            Board.owner, Board.pool = owner, pool
            run_state_machine_as_test(Board, settings=profile)

    await asyncio.to_thread(compare, f"http://127.0.0.1:{process.settings.port}")
