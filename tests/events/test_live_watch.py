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
