"""`python -m rota.dev.demo.fill`: the data of `rota dev --demo`.

It creates the company Fernhill Supply with a month of history, starts real tasks that wait for
people, and changes the definition of a tool. It does nothing that is done already. Settings come
from ROTA_* variables, as for the service.
"""

import argparse
import asyncio
import os
import sys
from typing import Any
from uuid import UUID

import httpx

from rota.accounts import service as accounts
from rota.composition import Composition
from rota.dev import CLIENT_ID
from rota.dev.demo import SERVERS
from rota.dev.demo.__main__ import COMPANY
from rota.dev.demo.first_use import HEADERS, Session, connect, sign_in
from rota.dev.demo.history import Company, write_history
from rota.platform import ids
from rota.platform.settings import Settings

NAME = "Fernhill Supply"
TIERS = {"a": "corporate", "b": "business"}
SEATS = 3
# The real tasks, and whose they are. Those of one agent can be decided together.
PROJECT = "today"
TASKS = (
    ("ada", "ticket-responder", "Answer Mina about the password", "Reply to ticket T-4821."),
    ("ada", "ticket-responder", "Answer Jonas about his invoice", "Reply to ticket T-4822."),
    ("grace", "ticket-responder", "Answer Aiko about the missing boxes", "Reply to ticket T-4823."),
    ("grace", "ticket-responder", "Tag Luis", "Ask me first, then set the tags of ticket T-4824."),
    ("ada", "payables-clerk", "Weekly payments", "Prepare the payment batch for the due bills."),
    ("ada", "finance-director", "Cash for the next quarter", "Write the outlook for the quarter."),
    ("grace", "engineering-director", "Move the label service", "Plan the move in three parts."),
    (
        "ada",
        "support-director",
        "Clear the backlog",
        "Reply to ticket T-4825. Delegate the reply to ticket-responder.",
    ),
)
READY_WITHIN_S = 60.0
POLL_S = 0.25


async def fill(settings: Settings, demo_url: str) -> None:
    issuer = next(i.issuer for i in settings.oidc_issuers if i.client_id == CLIENT_ID)
    async with (
        Composition(settings, pool_size=2) as parts,
        httpx.AsyncClient(timeout=30, trust_env=False, headers=HEADERS) as client,
    ):
        people = {
            name: await sign_in(client, settings.public_url, issuer, name)
            for name in ("ada", "grace")
        }
        users = {name: await _user_id(session) for name, session in people.items()}
        account_id = await _company(parts, people["ada"], users)
        for session in people.values():
            session.headers["X-Service-Account"] = ids.to_wire("acct", account_id)
        ada = people["ada"]
        await connect(ada, f"{demo_url}/{COMPANY}")
        servers = {each["name"]: each for each in (await ada.get("/api/mcp"))["servers"]}
        company = Company(
            account_id,
            TIERS[settings.variant],
            users["ada"],
            users["grace"],
            {name: (servers[name]["id"], servers[name]["url"]) for name in SERVERS},
        )
        written = await write_history(parts, owner_url(settings), company)
        started = await _start_tasks(people)
        await client.post(f"{demo_url}/_control/change")
        await ada.post(f"/api/mcp/{servers['helpdesk']['id']}/ping")
    sys.stdout.write(f"{NAME}: {written} finished tasks written, {started} tasks started.\n")


def owner_url(settings: Settings) -> str:
    url = settings.migration_database_url or settings.database_url
    return url.get_secret_value()


async def _user_id(session: Session) -> UUID:
    found = ids.from_wire("user", (await session.get("/api/me"))["user"]["id"])
    assert found is not None
    return found


async def _company(parts: Composition, ada: Session, users: dict[str, UUID]) -> UUID:
    """The company, which is created at the first time."""
    mine = (await ada.get("/api/me"))["accounts"]
    for account in mine:
        if account["name"] == NAME:
            found = ids.from_wire("acct", account["id"])
            assert found is not None
            return found
    tier = TIERS[parts.settings.variant]
    account_id = await accounts.create_company(parts.db, NAME, users["ada"], tier=tier, seats=SEATS)
    await accounts.put_member(parts.db, account_id, users["grace"], "member", approver=True)
    return account_id


async def _start_tasks(people: dict[str, Session]) -> int:
    """Starts the real tasks, and waits until each of them waits for a person or a subtask."""
    ada = people["ada"]
    path = f"/api/tasks?projectId={PROJECT}&limit=100"
    if (await ada.get(path))["total"]:
        return 0
    for person, agent, name, text in TASKS:
        body = {"agent": agent, "name": name, "input": text, "projectId": PROJECT}
        await people[person].post("/api/tasks", body)
    async with asyncio.timeout(READY_WITHIN_S):
        while True:
            if _settled((await ada.get(path))["tasks"]):
                return len(TASKS)
            await asyncio.sleep(POLL_S)


def _settled(tasks: list[dict[str, Any]]) -> bool:
    """Whether only the task that delegated is running, and its subtask waits."""
    running = [task for task in tasks if task["status"] in ("PENDING", "RUNNING")]
    return len(tasks) > len(TASKS) and len(running) == 1


def main() -> None:
    if os.environ.get("ROTA_ENV") == "production":
        sys.exit("ROTA_ENV is production. The demonstration data is not for production.")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo-url", required=True)
    asyncio.run(fill(Settings(), parser.parse_args().demo_url))


if __name__ == "__main__":
    main()
