"""A client that follows the texts of a task, over connections that can break."""

import asyncio
import json
from dataclasses import dataclass, field

from tests.events.reader import Reader
from tests.service import Person
from tests.tasks.world import uuid_of

Place = tuple[int, int]


@dataclass
class LiveClient:
    """Applies messages as the documentation says: `text` replaces, `delta` appends."""

    person: Person
    path: str
    texts: dict[Place, str] = field(default_factory=dict)
    # The messages in order: their types, and for texts also the step.
    log: list[str] = field(default_factory=list)
    after: int | None = None
    ended: bool = False
    connections: int = 0

    async def follow(self, *, at_most: int = 2**30, port: int | None = None) -> None:
        """Reads until the task ends, or up to this many bytes. Reads what is there first."""
        self.connections += 1
        port = port or self.person.service.settings.port
        async with Reader.open(port, self.person.token, self.path, self.after) as reader:
            while reader.taken < at_most and not self.ended:
                is_open = await reader.read(min(at_most - reader.taken, 65536))
                self._apply(reader)
                if not is_open:
                    return

    async def to_end(self, deadline_s: float = 120) -> None:
        """Reconnects until the task has ended."""
        async with asyncio.timeout(deadline_s):
            while not self.ended:
                try:
                    await self.follow()
                except (OSError, EOFError):
                    await asyncio.sleep(0.05)

    def _apply(self, reader: Reader) -> None:
        for entry in reader.received:
            if isinstance(entry, tuple):
                kind, data = entry
                place = (data["run"], data["step"])
                before = "" if kind == "text" else self.texts.get(place, "")
                self.texts[place] = before + data["text"]
                self.log.append(f"{kind} {data['step']}")
            else:
                self.after = entry.id
                self.log.append(entry.type)
                status = entry.data["data"].get("status")
                self.ended = self.ended or status in ("COMPLETED", "FAILED", "CANCELLED")
        reader.received.clear()

    async def stored(self, task: dict[str, object]) -> dict[Place, str]:
        """The texts of the task's model calls in the database."""
        async with self.person.service.owner() as connection:
            rows = await connection.fetch(
                "SELECT run, step, result::jsonb #>> '{}' AS result FROM steps "
                "WHERE task_id = $1 AND kind = 'model' AND state = 'finished' ORDER BY run, step",
                uuid_of(task),
            )
        return {(row["run"], row["step"]): _text(row["result"]) for row in rows}


def _text(result: str) -> str:
    parts = json.loads(result)["parts"]
    return "".join(part["content"] for part in parts if part["part_kind"] == "text")
