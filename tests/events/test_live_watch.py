"""Positions in a live text: whatever Redis loses or repeats, each client has a correct text."""

import json
import random

from rota.events.live_text import Version
from rota.events.live_watch import Topic, Watcher


class Client:
    def __init__(self, topic: Topic) -> None:
        self.watcher = Watcher(topic, resumes=False)
        self.texts: dict[tuple[int, int], str] = {}

    def apply(self, messages: bytes) -> None:
        for block in messages.decode().split("\n\n")[:-1]:
            kind, body = (line.split(": ", 1)[1] for line in block.split("\n"))
            data = json.loads(body)
            place = (data["run"], data["step"])
            before = "" if kind == "text" else self.texts.get(place, "")
            self.texts[place] = before + data["text"]


async def test_clients_agree_with_the_stored_text_whatever_redis_loses() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        topic, clients = Topic("live:x"), []
        clients.append(Client(topic))
        stored: dict[tuple[int, int], str] = {}
        for step in range(1, 4):
            attempts = chance.randint(1, 3)
            for attempt in range(attempts):
                version = Version(1, 1, step, attempt)
                text = ""
                for _ in range(chance.randint(0, 8)):
                    added = chance.choice(["a", "bc ", "ü", "🜁\n"])
                    offset, text = len(text.encode()), text + added
                    # A message arrives, is lost, or arrives twice.
                    for _ in range(chance.choice([0, 1, 1, 1, 2])):
                        if not topic.add(version, offset, added.encode()) and chance.random() < 0.7:
                            topic.add(version, 0, text.encode(), snapshot=True)
                    # An attempt that was given up does not come back.
                    topic.add(Version(1, 0, step, 9), 0, b"from a late worker")
                    for client in clients:
                        if chance.random() < 0.5:
                            client.apply(client.watcher.take())
                    if chance.random() < 0.2:
                        clients.append(Client(topic))
            stored[1, step] = text
            for client in clients:

                async def read(final: str = text) -> str:
                    return final

                client.apply(await client.watcher.finish((1, step), read))
                assert client.texts.get((1, step), "") == text
        assert all(clients[0].texts.get(place, "") == text for place, text in stored.items())


async def test_a_client_that_joins_late_gets_every_step_that_another_has_seen() -> None:
    topic = Topic("live:x")

    async def finish(client: Client, step: int) -> None:
        async def read() -> str:
            return f"text {step}"

        client.apply(await client.watcher.finish((1, step), read))

    first, second = Client(topic), Client(topic)
    for client in (first, second):
        for step in range(1, 9):
            await finish(client, step)
    assert first.texts == second.texts == {(1, step): f"text {step}" for step in range(1, 9)}


async def test_a_client_that_returns_does_not_keep_the_text_of_a_failed_attempt() -> None:
    topic = Topic("live:x")
    topic.add(Version(1, 1, 1, 0), 0, b"Given up")
    client = Client(topic)
    client.apply(client.watcher.take())
    # The next attempt says nothing, because it only calls tools.
    returned = Topic("live:x")
    client.watcher = Watcher(returned, resumes=True)

    async def read() -> str:
        return ""

    client.apply(await client.watcher.finish((1, 1), read))
    assert client.texts == {(1, 1): ""}
