"""Search: what it finds, in which order, and that no input breaks it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rota.agents import queries
from rota.agents.sync import sync
from rota.platform.db import Database
from tests.agents.conftest import Folder, agent_text
from tests.agents.test_endpoints import DEPARTMENTS, NAMES, SHIPPED, listed
from tests.service import Person


async def test_a_word_matches_whole_by_prefix_or_in_another_form(reader: Person) -> None:
    for search in ("receivables", "recei", "RECEIVABLE", "Receivables clerk", "clerk rec"):
        assert "receivables-clerk" in await listed(reader, search=search), search
    # "writi" is a prefix of "writing"; "write" is another form of it.
    for search in ("writing", "writi", "write", "writes"):
        assert "blog-writer" in await listed(reader, search=search), search


@pytest.mark.parametrize(
    ("search", "best"),
    [
        ("blog post", "blog-writer"),
        ("unpaid invoice", "receivables-clerk"),
        ("fix login bug", "bug-triager"),
        ("month end unicorn", "close-lead"),
        ("cfo", "finance-director"),
        ("CFO", "finance-director"),
        ("bid-manager", "proposal-lead"),
    ],
)
async def test_any_word_can_match_and_the_best_match_comes_first(
    reader: Person, search: str, best: str
) -> None:
    assert (await listed(reader, search=search))[0] == best
    assert await listed(reader, search="unicorn") == []


async def test_the_department_is_searched(reader: Person) -> None:
    finance = {agent.name for agent in SHIPPED if agent.department == "Finance"}
    for search in ("finance", "FINANCE", "financ"):
        assert finance <= set(await listed(reader, search=search)), search


async def test_stop_words_count_only_alone(reader: Person) -> None:
    plain = await listed(reader, search="month-end close")
    assert plain[0] == "close-lead"
    assert await listed(reader, search="the month-end of the close") == plain
    assert "sales-director" in await listed(reader, search="for")
    assert "sales-director" in await listed(reader, search="fore")


@pytest.mark.parametrize("search", ["", " ", "\t \n"])
async def test_an_empty_search_lists_all_agents(reader: Person, search: str) -> None:
    assert await listed(reader, search=search) == NAMES


HOSTILE = [
    *("!", "&", "|", "'", '"', "''", "\\", ":*", "!!", "a & | b", "a <-> b", "!blog", "blog:*"),
    *("'blog':A", "blog\\", "blog'", "(((", ")", "<b>", "&amp;", "%", "_", "*", "?", "--", ";"),
    *("'); DROP TABLE agents; --", "$1", "{}", "${x}", "🦆", "👩‍👩‍👧", "ж", "例え", "é", "ﬁ"),
    *("\u200b", "\ufeff", "\x01", "\x7f", "\u202e", "\U0010ffff", "x" * 200, "🦆" * 200),
    *("a " * 100, "http://example.com/a?b=c", "a@b.c", "/etc/passwd", "1e309", "-1", "0x10"),
]


@pytest.mark.parametrize("search", HOSTILE)
async def test_hostile_text_is_only_text(reader: Person, search: str) -> None:
    response = await reader.get("/api/agents", params={"search": search})
    assert response.status_code == 200, response.text
    assert response.json()["departments"] == DEPARTMENTS
    resolved = await reader.get("/api/agents/resolve", params={"q": search})
    assert resolved.status_code in (200, 404), resolved.text


async def test_search_operators_have_no_effect(reader: Person) -> None:
    plain = await listed(reader, search="blog writer")
    for search in ("blog & writer", "blog | writer", "blog <-> writer", "blog:* ('writer')"):
        assert await listed(reader, search=search) == plain, search
    assert await listed(reader, search="!blog") == await listed(reader, search="blog")


async def test_ten_thousand_characters_are_refused(reader: Person) -> None:
    response = await reader.get("/api/agents", params={"search": "blog " * 2000})
    assert response.status_code == 400
    [problem] = response.json()["error"]["details"]
    assert problem == {"field": "search", "message": "must have at most 200 characters"}


words = st.sampled_from(["writer", "lead", "the", "for", "review", "a", "ledg", "crm", "e-mail"])
# What a query string can contain: no lone surrogates. NUL has its own test.
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)
searches = st.one_of(text, st.lists(st.one_of(words, text), max_size=4).map(" ".join)).map(
    lambda search: search[:200]
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    search=st.one_of(st.none(), searches),
    department=st.one_of(st.none(), st.sampled_from([*DEPARTMENTS, "Astrology"])),
    tier=st.one_of(st.none(), st.integers(1, 3)),
    limit=st.integers(4, 200),
)
async def test_the_pages_together_are_the_whole_list_without_duplicates(
    reader: Person, search: str | None, department: str | None, tier: int | None, limit: int
) -> None:
    query: dict[str, Any] = {"search": search, "department": department, "tier": tier}
    query = {name: value for name, value in query.items() if value is not None}
    everyone = await listed(reader, **query)
    assert len(set(everyone)) == len(everyone)
    pages: list[str] = []
    for number in range(1, len(everyone) // limit + 2):
        response = await reader.get("/api/agents", params={**query, "page": number, "limit": limit})
        body = response.json()
        assert response.status_code == 200, response.text
        assert body["total"] == len(everyone)
        assert len(body["agents"]) <= limit
        pages += [agent["name"] for agent in body["agents"]]
    assert pages == everyone


@settings(max_examples=100, deadline=None)
@given(search=searches)
async def test_the_score_of_any_match_is_between_0_and_1(reader: Person, search: str) -> None:
    response = await reader.get("/api/agents/resolve", params={"q": search or "-"})
    assert response.status_code in (200, 404), response.text
    if response.status_code == 200:
        assert 0 < response.json()["score"] <= 1


async def found(url: str, search: str) -> list[str]:
    db = Database(url, pool_size=1)
    await db.open()
    try:
        async with db.directory() as connection:
            page = await queries.page(
                connection, department=None, rank=None, search=search, limit=50, offset=0
            )
            return [agent.name for agent in page.agents]
    finally:
        await db.close()


async def test_name_counts_more_than_use_and_use_more_than_description_and_department(
    sync_url: str, folder: Folder
) -> None:
    plain = {"description": "Plain."}
    root: Path = folder(
        one=agent_text("one", description="About ledgers."),
        two=agent_text("two", tags="ledgers", **plain),
        three=agent_text("ledgers", **plain),
        four=agent_text("four", display="Ledgers", **plain),
        five=agent_text("five", instructions="Ledgers, ledgers, ledgers.", **plain),
        six=agent_text("six", use_for="keep ledgers", **plain),
        seven=agent_text("seven", department="Ledgers", **plain),
        eight=agent_text("eight", aliases="ledgers-clerk", **plain),
    )
    await sync(sync_url, root)
    expected = ["ledgers", "eight", "four", "six", "two", "one", "seven"]
    assert await found(sync_url, "ledgers") == expected
    assert await found(sync_url, "ledg") == expected


async def test_what_an_agent_does_not_do_is_not_searched(sync_url: str, folder: Folder) -> None:
    texts = {
        "one": "Reviews code and never merges it. Finds defects.",
        "two": "Analyses pages, buys no links, and it does not publish or translate.",
        "three": "Plans trips. It doesn't book flights, hotels or cars; drafts itineraries.",
        "four": "Answers mail but cannot delete messages",
    }
    await sync(sync_url, folder(**{n: agent_text(n, description=d) for n, d in texts.items()}))
    for word in ("merges", "buys", "links", "publish", "translate", "book", "hotels", "delete"):
        assert await found(sync_url, word) == [], word
    for word, name in (
        *(("reviews", "one"), ("defects", "one"), ("analyses", "two"), ("pages", "two")),
        *(("trips", "three"), ("itineraries", "three"), ("mail", "four")),
    ):
        assert await found(sync_url, word) == [name], word


async def test_the_words_of_a_changed_or_retired_agent_are_not_found(
    sync_url: str, folder: Folder
) -> None:
    await sync(sync_url, folder(one=agent_text("one", tags="alpha"), two=agent_text("two")))
    await sync(sync_url, folder(one=agent_text("one", tags="beta")))
    assert await found(sync_url, "alpha two") == []
    assert await found(sync_url, "beta") == ["one"]
    await sync(sync_url, folder(one=agent_text("one", tags="beta"), two=agent_text("two")))
    assert await found(sync_url, "two") == ["two"]


async def test_equal_matches_are_in_the_order_of_their_names(sync_url: str, folder: Folder) -> None:
    files = {f"x_{n}": agent_text(f"x-{n}", display="Same", description="Same.") for n in range(9)}
    await sync(sync_url, folder(**files))
    assert await found(sync_url, "same") == [f"x-{n}" for n in range(9)]


async def test_a_search_in_another_alphabet_works(sync_url: str, folder: Folder) -> None:
    root = folder(
        one=agent_text("one", description="Führt die Bücher."),
        two=agent_text("two", description="Ведёт учёт."),
        three=agent_text("three", description="请求/报表 and/or e-mail."),
    )
    await sync(sync_url, root)
    assert await found(sync_url, "Büch") == ["one"]
    assert await found(sync_url, "учёт") == ["two"]
    assert await found(sync_url, "报") == ["three"]
    assert await found(sync_url, "mail") == ["three"]
