"""Concurrent first sign-ins create exactly one user."""

import asyncio

import httpx

from tests.auth.conftest import Realm


async def users_and_sessions(realm: Realm, subject: str) -> tuple[int, int, int]:
    async with realm.service.owner() as connection:
        row = await connection.fetchrow(
            """
            SELECT count(DISTINCT i.user_id) AS identities, count(DISTINCT u.id) AS users,
                   count(DISTINCT s.id) AS sessions
            FROM identities i
            JOIN users u ON u.id = i.user_id
            JOIN accounts a ON a.id = u.id AND a.kind = 'personal'
            LEFT JOIN sessions s ON s.user_id = u.id
            WHERE i.issuer = $1 AND i.subject = $2
            """,
            realm.provider.issuer,
            subject,
        )
    return row["identities"], row["users"], row["sessions"]


async def start_all(realm: Realm, tokens: list[str]) -> list[httpx.Response]:
    return await asyncio.gather(*map(realm.start, tokens))


async def test_twenty_concurrent_first_sign_ins_create_one_user(realm: Realm) -> None:
    subject = "twenty-at-once"
    tokens = [realm.provider.mint("ed", "Ed25519", sub=subject).token() for _ in range(20)]
    responses = await start_all(realm, tokens)
    assert [response.status_code for response in responses] == [200] * 20
    seen = await asyncio.gather(*[realm.me(response.json()["token"]) for response in responses])
    assert len({response.json()["user"]["id"] for response in seen}) == 1
    assert await users_and_sessions(realm, subject) == (1, 1, 20)
    async with realm.service.owner() as connection:
        orphans = await connection.fetchval(
            "SELECT count(*) FROM users WHERE NOT EXISTS"
            " (SELECT FROM identities WHERE user_id = users.id)"
        )
    assert orphans == 0


async def test_one_token_sent_twenty_times_concurrently_starts_one_session(realm: Realm) -> None:
    subject = "one-token"
    token = realm.provider.mint("rs", sub=subject).token()
    responses = await start_all(realm, [token] * 20)
    assert sorted(response.status_code for response in responses) == [200] + [401] * 19
    assert await users_and_sessions(realm, subject) == (1, 1, 1)


async def test_a_sign_in_updates_the_profile(realm: Realm) -> None:
    async def seen(**claims: str) -> tuple[str | None, str | None]:
        started = await realm.start(realm.provider.mint("rs", sub="profile", **claims).token())
        user = (await realm.me(started.json()["token"])).json()["user"]
        return user["email"], user["name"]

    assert await seen() == (None, None)
    assert await seen(email="a@example.test") == ("a@example.test", None)
    assert await seen(name="Ada") == ("a@example.test", "Ada")
    assert await seen(email="b@example.test", name="Ada L.") == ("b@example.test", "Ada L.")
    assert await seen(name="n" * 1000) == ("b@example.test", "n" * 320)
