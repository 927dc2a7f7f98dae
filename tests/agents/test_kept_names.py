"""Names and aliases of agents that stay in the catalog without a file."""

import pytest

from rota.agents import queries
from rota.agents.files import CatalogInvalid, catalog_folder
from rota.agents.sync import sync
from tests.agents.catalogs import connected, current, names, run_sync
from tests.agents.conftest import Folder, agent_text


async def test_a_file_cannot_use_a_name_or_an_alias_of_an_agent_that_stays(
    url: str, folder: Folder
) -> None:
    await sync(url, folder(one=agent_text("one", aliases="uno"), two=agent_text("two")))
    root = folder(six=agent_text("six", aliases="sei, two"), uno=agent_text("uno"))
    with pytest.raises(CatalogInvalid) as refused:
        await sync(url, root, add_only=True)
    assert [str(problem) for problem in refused.value.problems] == [
        f"{root}/six.md:8: `two` is already used by the agent two, which is in the catalog without "
        "a file; choose another",
        f"{root}/uno.md:2: `uno` is already used by the agent one, which is in the catalog without "
        "a file; choose another",
    ]
    assert await current(url) == {"one": 1, "two": 1}
    # Agents that are retired give their names up, and those with a file have those of the file.
    report = await sync(url, folder(uno=agent_text("uno")))
    assert names(report.retired) == [("one", 1), ("two", 1)]
    root = folder(six=agent_text("six", aliases="one"), uno=agent_text("uno", aliases="two"))
    assert names((await sync(url, root, add_only=True)).added) == [("six", 1)]


async def test_a_file_that_does_not_change_may_share_a_name(url: str, folder: Folder) -> None:
    """Earlier versions accepted it, so a sync of another file must not fail because of it."""
    await sync(url, folder(one=agent_text("one"), aaa=agent_text("aaa")))
    async with connected(url) as connection:
        await connection.execute("UPDATE agent_versions SET aliases = '{one}' WHERE name = 'aaa'")
        named = await queries.named(connection, "one")
    assert named is not None
    assert named.name == "one"
    report = await sync(url, folder(one=agent_text("one"), six=agent_text("six")), add_only=True)
    assert (names(report.unchanged), names(report.added)) == ([("one", 1)], [("six", 1)])
    with pytest.raises(CatalogInvalid, match="`one` is already used by the agent aaa"):
        await sync(url, folder(one=agent_text("one", tier=2)), add_only=True)


async def test_the_shipped_catalog_gives_way_to_agents_that_stay(url: str, folder: Folder) -> None:
    """Every upgrade loads it. An upgrade must not fail because of the operator's agents."""
    own = {
        "sales_email_writer": agent_text("sales-email-writer"),
        "sales": agent_text("sales", aliases="crm-steward"),
    }
    await sync(url, folder(**own))
    result = await run_sync(url, "--add-only")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        "Warning: the agent crm-steward was left out: its name is an alias of the agent sales, "
        "which is in the catalog without a file.",
        "Warning: the agent outreach-writer has no alias `sales-email-writer`: it is used by the "
        "agent sales-email-writer, which is in the catalog without a file.",
    ]
    shipped = {path.stem for path in catalog_folder().rglob("*.md")}
    assert (await current(url)).keys() == shipped - {"crm-steward"} | {
        "sales-email-writer",
        "sales",
    }
    async with connected(url) as connection:
        found = await queries.find(connection, "outreach-writer")
        assert found is not None
        assert found.aliases == ("cold-email-writer",)
    # The next upgrade changes nothing.
    again = await sync(url, None, add_only=True)
    assert (again.added, again.changed, len(again.warnings)) == ((), (), 2)
    # Agents that are retired give their names up. An agent that is there then keeps its name.
    retired = await sync(url, None)
    assert names(retired.retired) == [("sales", 1), ("sales-email-writer", 1)]
    assert (names(retired.added), names(retired.changed)) == (
        [("crm-steward", 1)],
        [("outreach-writer", 2)],
    )
    async with connected(url) as connection:
        await connection.execute("UPDATE agents SET retired_at = NULL WHERE name = 'sales'")
    again = await sync(url, None, add_only=True)
    assert (again.added, again.changed, again.warnings) == ((), (), ())
