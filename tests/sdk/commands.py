"""The commands of the command line that do what a method of the SDK does."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Arguments = list[str] | None
DONE = frozenset((0,))
# A followed task can have failed, be cancelled or wait for a person.
FOLLOWED = frozenset((0, 3, 4, 5))
# A list command shows this many.
MANY = "1000"


@dataclass(frozen=True)
class Command:
    # From the arguments of the method. None if the command has no option for one of them.
    arguments: Callable[..., Arguments]
    # The part of what it prints that the method returns.
    pick: str | None = None
    codes: frozenset[int] = DONE
    is_stream: bool = False


def reference(resource: Any) -> str:
    return resource if isinstance(resource, str) else str(resource.id)


def options(**given: Any) -> list[str]:
    """Each option with its value, if there is one."""
    found: list[str] = []
    for name, value in given.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if isinstance(value, (list, tuple)):
            for each in value:
                found += [option, each]
        elif value is True:
            found.append(option)
        elif value is not None and value is not False:
            found += [option, str(value)]
    return found


def create_task(
    name: str,
    input: str | None = None,  # noqa: A002
    project_id: str | None = None,
    parent_task_id: str | None = None,
    deadline: datetime | None = None,
    output_schema: Any = None,
    **others: Any,
) -> Arguments:
    known = {"agent", "description", "priority", "budget_cents", "idempotency_key", "dry_run"}
    # An argument cannot be as long as an input, and then it would come from a file.
    if not set(others) <= known or len(input or "") > 100_000:
        return None
    return [
        *("tasks", "create", name),
        *options(
            **others,
            input=input if input is None or not input.startswith("@") else f"@{input}",
            project=project_id,
            parent=parent_task_id,
            # In the time zone of this machine, in whole seconds.
            deadline=deadline and deadline.astimezone().strftime("%Y-%m-%dT%H:%M:%S"),
            output_schema=None if output_schema is None else json.dumps(output_schema),
        ),
    ]


def list_tasks(
    status: Any = None,
    agent: str | None = None,
    project_id: str | None = None,
    q: str | None = None,
    page_size: int | None = None,
    **others: Any,
) -> Arguments:
    if others:
        return None
    states = [status] if isinstance(status, str) else status
    filters = options(status=states, agent=agent, project=project_id, search=q)
    return ["tasks", "list", *filters, "--limit", MANY]


def decide(command: str) -> Callable[..., Arguments]:
    def arguments(task: Any, review: Any, **others: Any) -> Arguments:
        if not set(others) <= {"reason", "resume", "idempotency_key"} or review.number is None:
            return None
        shown = options(review=review.number, digest=review.digest)
        return ["tasks", command, reference(task), *shown, *options(**others)]

    return arguments


def wait(task: Any, timeout: float | None = None, until_review: bool = False) -> Arguments:
    # The command has no timeout. The test has one.
    if timeout is not None and timeout < 30:
        return None
    return ["tasks", "follow", reference(task), *options(until_review=until_review)]


def create_schedule(
    name: str, cron: str, task: Any, time_zone: str = "UTC", **others: Any
) -> Arguments:
    # The task of a schedule has the name of the schedule.
    known = {"name", "agent", "input"}
    if not isinstance(task, dict) or not set(task) <= known or task.get("name") != name or others:
        return None
    about = options(agent=task.get("agent"), input=task.get("input"))
    return ["schedules", "create", name, "--cron", cron, "--time-zone", time_zone, *about]


def update_schedule(schedule: Any, paused: Any = None, **others: Any) -> Arguments:
    if others or not isinstance(paused, bool):
        return None
    return ["schedules", "pause" if paused else "resume", reference(schedule)]


def replace_policies(approvals: dict[str, Any]) -> Arguments:
    second = "--second-person" if approvals.get("secondPerson") else "--no-second-person"
    limit = approvals.get("maxCostCents")
    return [
        *("policies", "set", second, *options(approvers=approvals.get("approvers"))),
        *(["--no-max-cost"] if limit is None else ["--max-cost-cents", str(limit)]),
    ]


def connect(name: str, url: str, **others: Any) -> Arguments:
    return None if others else ["tools", "connect", name, url]


def invoke(server: Any, tool: str, arguments: Any = None) -> Arguments:
    given = None if arguments is None else json.dumps(arguments)
    return ["tools", "call", reference(server), tool, *options(arguments=given)]


def of_one(*command: str) -> Callable[..., Arguments]:
    """A command about one resource. Other arguments are its options."""

    def arguments(*resource: Any, **others: Any) -> Arguments:
        named = [others.pop(name) for name in list(others) if name in _RESOURCES]
        shown = [reference(each) for each in (*resource, *named)]
        others.pop("page_size", None)
        return [*command, *shown, *options(**others)]

    return arguments


_RESOURCES = ("task", "schedule", "server", "key", "rule", "name")


def of_all(*command: str) -> Callable[..., Arguments]:
    def arguments(page_size: int | None = None, **others: Any) -> Arguments:
        return None if others else list(command)

    return arguments


COMMANDS = {
    "me": Command(of_all("whoami")),
    "tasks.create": Command(create_task, "task"),
    "tasks.quote": Command(lambda **given: create_task(dry_run=True, **given), "quote"),
    "tasks.list": Command(list_tasks, "tasks"),
    "tasks.get": Command(of_one("tasks", "show"), "task"),
    "tasks.timeline": Command(of_one("tasks", "show", "--timeline"), "steps"),
    "tasks.review": Command(of_one("tasks", "review"), "review"),
    "tasks.approve": Command(decide("approve")),
    "tasks.reject": Command(decide("reject")),
    "tasks.retry": Command(
        lambda task, from_=None, **given: [
            *("tasks", "retry", reference(task)),
            *options(from_=from_, **given),
        ],
        "task",
    ),
    "tasks.cancel": Command(of_one("tasks", "cancel"), "task"),
    "tasks.fork": Command(
        lambda task, from_step, **given: [
            *("tasks", "fork", reference(task), "--step", str(from_step)),
            *options(**given),
        ],
        "task",
    ),
    "tasks.fork_options": Command(of_one("tasks", "fork", "--options"), "fork"),
    "tasks.wait": Command(wait, "task", FOLLOWED, is_stream=True),
    "tasks.follow": Command(of_one("tasks", "follow"), None, FOLLOWED, is_stream=True),
    "events.follow": Command(
        lambda **given: ["listen", *options(**given)], None, DONE, is_stream=True
    ),
    "approvals.list": Command(of_all("inbox"), "approvals"),
    "agents.list": Command(of_all("agents", "list", "--limit", MANY), "agents"),
    "agents.get": Command(of_one("agents", "show"), "agent"),
    "schedules.list": Command(of_all("schedules", "list"), "schedules"),
    "schedules.create": Command(create_schedule, "schedule"),
    "schedules.get": Command(of_one("schedules", "show")),
    "schedules.update": Command(update_schedule, "schedule"),
    "schedules.run": Command(of_one("schedules", "run"), "task"),
    "policies.get": Command(of_all("policies", "show")),
    "policies.replace": Command(replace_policies),
    "rules.list": Command(of_all("rules", "list"), "rules"),
    "tool_servers.list": Command(of_all("tools", "list"), "servers"),
    "tool_servers.connect": Command(connect),
    "tool_servers.tools": Command(of_one("tools", "show"), "tools"),
    "tool_servers.ping": Command(of_one("tools", "ping")),
    "tool_servers.invoke": Command(invoke, None, frozenset((0, 1))),
    "keys.list": Command(of_all("keys", "list"), "keys"),
}
# These return nothing.
for method, command in {
    "schedules.delete": ("schedules", "delete"),
    "rules.delete": ("rules", "delete"),
    "tool_servers.disconnect": ("tools", "disconnect"),
    "keys.delete": ("keys", "delete"),
}.items():
    COMMANDS[method] = Command(of_one(*command))
