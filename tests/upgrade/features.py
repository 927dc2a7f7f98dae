"""What this release adds, used while every process runs it. After the rollback, the release before
must be able to work with what it finds. Change this file when a release is made."""

import json
from typing import Any

from rota.platform import ids
from tests.service import Person
from tests.upgrade.fleet import Installation
from tests.upgrade.load import Load
from tests.upgrade.release import Release
from tests.webhooks.receiver import Receiver

# (method, path, body). Each must succeed.
REQUESTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "PUT",
        "/api/me/notifications",
        {
            "content": "minimal",
            "mail": {"kinds": ["approval_waiting", "task_failed"]},
            "chat": {"kinds": [], "url": None},
        },
    ),
    ("POST", "/api/webhooks", {"url": "RECEIVER"}),
)
# What the release before cannot read after the operator's command `credits grant`: it does not know
# this kind of transaction. docs/upgrading.md says to wait with new commands until the upgrade is
# final.
NOT_READABLE = {"/api/credits/transactions"}


async def use(load: Load, person: Person, receiver: Receiver) -> None:
    for method, path, body in REQUESTS:
        wanted = json.loads(json.dumps(body).replace("RECEIVER", receiver.url))
        answer = await load.request(person, method, path, wanted)
        if answer is None or answer.status_code >= 300:
            load.wrong.append(f"{method} {path}: {answer and answer.text}")


async def grant(installation: Installation, person: Person, release: Release) -> None:
    account = ids.to_wire("acct", person.user_id)
    await release.admin(
        installation.variables(None), "credits", "grant", account, "5", "--reason", "A test"
    )


async def walk(person: Person, release: Release) -> dict[str, str]:
    """Reads everything that the release can list without an ID. Returns what failed, by path."""
    described = json.loads((release.root / "openapi" / "variant-a.json").read_text())
    failed = {}
    for path, operations in described["paths"].items():
        if "get" not in operations or "{" in path or path == "/metrics":
            continue
        answer = await person.get(path, headers={"Accept": "application/json"})
        if answer.status_code >= 500:
            failed[path] = f"{release.name}: {answer.status_code} {answer.text[:200]}"
    return failed
