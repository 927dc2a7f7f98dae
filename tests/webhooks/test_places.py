"""How many webhooks a worker sends for at the same time, and how accounts share that."""

from collections import Counter
from uuid import UUID

import pytest

from rota.composition import Composition
from rota.webhooks import dispatcher, progress, turns
from rota.webhooks.reading import PAGE
from tests.service import Person, Service
from tests.webhooks.receiver import Receiver, response
from tests.webhooks.test_turns import taken
from tests.webhooks.world import create, happen, read, sending, until


async def test_without_a_free_place_webhooks_take_short_turns(
    office: Service, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "PLACES", 1)
    monkeypatch.setattr(turns, "CROWDED_TURN_S", 0.0)
    receiver.answers["/failing"] = lambda _: response(500)
    made = [(await create(person, receiver.url + path))[0] for path in ("/1", "/2", "/3")]
    failing, _ = await create(person, receiver.url + "/failing")
    async with sending(office) as parts:
        await happen(parts, person, 20)
        for webhook in made:
            await until(person, webhook, confirmedSequence=made[0]["confirmedSequence"] + 24)
        await until(person, failing, state="failing")
    # Each begins before the first one has sent everything.
    sent = [each.path for each in receiver.received if each.path != "/failing"]
    paths = set(sent)
    assert max(map(sent.index, paths)) < min(len(sent) - sent[::-1].index(each) for each in paths)


async def test_a_webhook_that_wants_no_event_gives_up_its_place(
    office: Service, person: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "CROWDED_TURN_S", 0.0)
    webhook, _ = await create(person, receiver.url + "/", events=["credits.depleted"])
    async with Composition(office.settings, pool_size=4) as parts:
        await happen(parts, person, 2 * PAGE)
        claim = await taken(parts, person, webhook)
        sender = turns.DeliveryTurns(parts.db, parts.fanout, parts.webhook_sender)
        await sender.take(claim, lambda: True)
        await sender.aclose()
        found = await read(person, webhook)
        assert found["confirmedSequence"] == webhook["confirmedSequence"] + PAGE
        # It is due, so that its next turn comes after those of others.
        await taken(parts, person, webhook)


async def test_an_account_leaves_places_for_others(office: Service, person: Person) -> None:
    other = await office.sign_in()
    for _ in range(6):
        await create(person, "https://example.com/")
    await create(other, "https://example.com/")
    accounts = {person.user_id, other.user_id}
    async with Composition(office.settings, pool_size=4) as parts:
        taken: dict[UUID, int] = {}
        for shared, expected in ((1, {person.user_id: 4, other.user_id: 1}), (0, {}), (9, {})):
            async with parts.db.relay() as connection:
                claims = await progress.claim(
                    connection,
                    accounts,
                    limit=9,
                    failing=9,
                    lease_s=60,
                    taken=taken,
                    own=3,
                    shared=shared,
                )
            taken = taken or dict(Counter(each.account_id for each in claims))
            if expected:
                assert taken == expected
            else:
                assert len(claims) == (2 if shared else 0)
