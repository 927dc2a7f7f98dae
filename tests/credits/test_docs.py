"""The examples in docs/credits.md work, and its table matches the ledger."""

import re
import sys
from pathlib import Path
from typing import get_args

from rota.credits.model import Kind
from rota.credits.verify import BOOKS
from tests.credits.world import CENT, Shop, end_run, new_account, spend, start_run
from tests.mcp.test_docs import shell
from tests.tasks.world import newcomer

PAGE = Path(__file__).parents[2] / "docs" / "credits.md"
COLUMNS = BOOKS[:5]


def documented() -> list[str]:
    """The rows of the table with one task's entries."""
    lines = PAGE.read_text().splitlines()
    start = lines.index("| kind | " + " | ".join(COLUMNS) + " |") + 2
    return lines[start : lines.index("", start)]


async def test_the_page_shows_the_entries_of_one_task(shop: Shop) -> None:
    account_id = await new_account(shop.db, "standard", topup_cents=500)
    async with shop.db.write(account_id) as tx:
        earlier = await start_run(tx, 1_470 * CENT)
        await spend(tx, earlier, 1, 1_470 * CENT)
        run = await start_run(tx, 50 * CENT)
        await spend(tx, run, 1, 12_345)
        await spend(tx, run, 2, 350_000)
        await end_run(tx, run)
        rows = await tx.fetch(
            "SELECT * FROM entries WHERE account_id = $1 AND task_id = $2 ORDER BY id",
            account_id,
            run.task_id,
        )
        left = await tx.fetchrow(
            "SELECT allowance, topup FROM balances WHERE account_id = $1", account_id
        )
    shown = [
        " | ".join([row["kind"], *(f"{row[book]:+}" if row[book] else "" for book in COLUMNS)])
        for row in rows
    ]
    assert [f"| {' '.join(each.split())} |" for each in shown] == [
        " ".join(line.split()) for line in documented()
    ]
    assert dict(left) == {"allowance": 0, "topup": 500 * CENT - 62_345}


def test_the_page_names_every_book_and_every_kind() -> None:
    text = PAGE.read_text()
    assert all(f"`{name}`" in text for name in (*BOOKS, *get_args(Kind)))


async def test_every_example_works(shop: Shop) -> None:
    examples = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    balance, settings, top_up, holds, forecast, usage, transactions, filtered, verify = examples
    person = await newcomer(shop.service, tier="standard")
    variables = {
        "BASE": f"http://127.0.0.1:{shop.service.settings.port}",
        "TOKEN": person.token,
        "ROTA_DATABASE_URL": shop.service.database_url,
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
    }
    [shown] = await shell(balance, variables)
    assert shown["totalAvailable"] == 1_500
    [shown] = await shell(settings, variables)
    assert shown == {"settings": {"allowOverflow": False, "alertBelowCents": 1_000}}
    [shown] = await shell(top_up, variables)
    assert shown["amount"] == 2_000
    [shown] = await shell(holds, variables)
    assert shown == {"holds": [], "total": 0, "heldUsd": "0.000000"}
    [shown] = await shell(forecast, variables)
    assert shown["forecast"]["windowDays"] == 7
    [shown] = await shell(usage, variables)
    assert shown["groupBy"] == "model"
    [shown] = await shell(transactions, variables)
    assert [each["kind"] for each in shown["transactions"]] == ["allowance"]
    [shown] = await shell(filtered, variables)
    assert shown == {"transactions": [], "total": 0}
    assert await shell(f"{verify.strip()} >&2", variables) == []
