"""`rota admin accounts`: finding accounts, and ending their sessions."""

import asyncio
import json

from rota.platform import ids
from tests.cli.test_admin import ACCOUNT, admin, is_one_line
from tests.service import Service, environment


async def test_the_sessions_of_one_user_end(office: Service) -> None:
    settings = environment(office.settings)
    person, other = await office.sign_in(), await office.sign_in()
    account = ids.to_wire("acct", person.user_id)
    ended = await admin(settings, "accounts", "end-sessions", account)
    assert ended.stdout == f"Sessions of {account} that ended: 1.\n", ended.output
    async with asyncio.timeout(30):
        while (await person.get("/api/me")).status_code != 401:
            await asyncio.sleep(0.1)
    assert (await other.get("/api/me")).status_code == 200
    async with office.owner() as connection:
        [event] = await connection.fetch(
            "SELECT data FROM events WHERE account_id = $1 AND type = 'session.revoked'",
            person.user_id,
        )
    assert json.loads(event["data"])["by"] is None
    again = await admin(settings, "accounts", "end-sessions", account, "--json")
    assert json.loads(again.stdout) == {"account": account, "ended": 0}
    missing = await admin(settings, "accounts", "end-sessions", ACCOUNT)
    assert is_one_line(missing)
    assert missing.stderr == f"Account {ACCOUNT} not found.\n"


async def test_accounts_are_found_by_a_part_of_their_name(office: Service) -> None:
    settings = environment(office.settings)
    owner = await office.sign_in()
    for name in ("Fernhill Supply", "50% Off"):
        made = await admin(
            settings, "companies", "create", name, "--owner", ids.to_wire("user", owner.user_id)
        )
        assert made.exit_code == 0, made.output
    for text, found in (("fernHILL", ["Fernhill Supply"]), ("50%", ["50% Off"]), ("5_%", [])):
        listed = (await admin(settings, "accounts", "list", "--name", text)).stdout
        names = [name for name in ("Fernhill Supply", "50% Off") if name in listed]
        assert names == found
