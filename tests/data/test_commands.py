"""The commands of operators: accounts, their data, and money that is given."""

import asyncio
from pathlib import Path

from rota.platform import ids
from tests.audit.world import rota
from tests.data.test_export import read
from tests.data.world import World

# An account that was told that its money is low.
TOLD_LOW = """
    UPDATE balances SET told_low = true, alert_below = allowance + topup + 1 WHERE account_id = $1
"""


async def test_an_operator_lists_shows_exports_and_erases(world: World, tmp_path: Path) -> None:
    service = world.service
    person = await service.sign_in()
    account = ids.to_wire("acct", person.user_id)
    listed = await rota(service, "admin", "accounts", "list", "--limit", "1000")
    assert account in listed.output
    shown = await rota(service, "admin", "accounts", "show", account)
    assert "personal" in shown.output
    assert "open" in shown.output
    path = tmp_path / "out"
    exported = await rota(service, "admin", "accounts", "export", account, "--output", str(path))
    assert exported.exit_code == 0, exported.output
    assert path.stat().st_mode & 0o777 == 0o600
    assert read(path.read_bytes())[0]["account"] == account
    asked = await rota(service, "admin", "accounts", "erase", account)
    assert asked.exit_code == 1
    erased = await rota(service, "admin", "accounts", "erase", account, "--yes")
    assert erased.exit_code == 0, erased.output
    # A message tells the service, which is another process for the command.
    async with asyncio.timeout(10):
        while (await person.get("/api/me")).status_code != 401:
            await asyncio.sleep(0.02)
    shown = await rota(service, "admin", "accounts", "show", account)
    assert "Stage:" in shown.output
    await world.sweep().erase()
    again = await rota(service, "admin", "accounts", "erase", account, "--yes")
    assert "is erased" in again.output
    shown = await rota(service, "admin", "accounts", "show", account)
    assert "Erased:" in shown.output
    gone = await rota(service, "admin", "accounts", "export", account)
    assert gone.exit_code == 1
    for command in ("show", "export"):
        unknown = await rota(service, "admin", "accounts", command, f"acct_{'0' * 32}")
        assert unknown.exit_code == 1
    unknown = await rota(service, "admin", "accounts", "erase", f"acct_{'0' * 32}", "--yes")
    assert unknown.exit_code == 1


async def test_money_is_given_once_for_each_key(world: World) -> None:
    service = world.service
    person = await service.sign_in()
    account = ids.to_wire("acct", person.user_id)
    before = (await person.get("/api/credits/balance")).json()
    async with service.owner() as connection:
        await connection.execute(TOLD_LOW, person.user_id)

    async def grant(*arguments: str) -> str:
        command = ("admin", "credits", "grant", account, *arguments)
        done = await rota(service, *command)
        assert done.exit_code == 0, done.output
        return done.output

    first = ("12.50", "--reason", "Outage", "--key", "outage")
    assert "$12.50" in await grant(*first)
    assert "used before" in await grant(*first)
    other = await rota(service, "admin", "credits", "grant", account, "99", *first[1:])
    assert other.exit_code != 0
    assert "Use another key" in other.output
    await grant("1", "--reason", "More")
    after = (await person.get("/api/credits/balance")).json()
    assert after != before
    shown = (await person.get("/api/credits/transactions?kind=grant")).json()
    assert sorted(each["amountCents"] for each in shown["transactions"]) == [100, 1250]
    assert {each["description"] for each in shown["transactions"]} == {"Granted by the operator"}
    assert await world.ledger_problems(person.user_id) == []
    async with service.owner() as connection:
        # When the money falls below the amount again, `credits.low` is sent.
        told = "SELECT told_low FROM balances WHERE account_id = $1"
        assert await connection.fetchval(told, person.user_id) is False
    trail = (await person.get("/api/audit?action=credits")).json()["entries"]
    assert any("Outage" in str(entry) for entry in trail)
    for amount in ("0", "-1", "1.005", "much", "nan"):
        wrong = await rota(
            service, "admin", "credits", "grant", account, "--reason", "x", "--", amount
        )
        assert wrong.exit_code == 2, amount
    empty = await rota(service, "admin", "credits", "grant", account, "1", "--reason", " ")
    assert empty.exit_code == 2
    unknown = await rota(
        service, "admin", "credits", "grant", f"acct_{'0' * 32}", "1", "--reason", "x"
    )
    assert unknown.exit_code == 1
