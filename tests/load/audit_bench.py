"""What audit entries cost: creating tasks with and without them.

Part of `make bench`. Two services use the same database, and one of them commits without appending.
They take turns with every request, so that whatever else the machine does slows down both.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rota.dev.stack import Stack
from rota.platform.telemetry import configure_logging
from tests.load.bench import COMPONENTS, Row, people_of, quieten, report
from tests.load.raw_http import RawClient, request
from tests.load.statements import BODY
from tests.service import Service, until_live

# Appending costs at most a tenth.
TARGET = 0.90
WITHOUT = "tests.load.without_audit"
WARM_UP = 200


async def main(requests: int, rounds: int) -> int:
    configure_logging("WARNING", "console")
    with tempfile.TemporaryDirectory() as data:
        async with (
            Stack(Path(data), components=COMPONENTS) as stack,
            Service.start(stack, variant="a", name="audit_bench") as inside,
        ):
            people = await people_of(inside)
            await quieten(inside)
            sent = [request("POST", "/api/tasks", person.token, BODY) for person in people]
            async with (
                inside.process(fresh=True, log_level="INFO") as audited,
                inside.process(fresh=True, log_level="INFO", command=(WITHOUT,)) as plain,
            ):
                for service in (audited, plain):
                    await until_live(service.http)
                clients = [RawClient(service.settings.port) for service in (audited, plain)]
                await measure(clients, sent, WARM_UP)
                row = Row("POST /api/tasks with audit entries", TARGET, [], [])
                for _ in range(rounds):
                    with_entries, without = await measure(clients, sent, requests)
                    # Requests per second of one client.
                    row.rota.append(1 / with_entries)
                    row.bare.append(1 / without)
    report([row])
    return 0 if row.ratio >= row.target else 1


async def measure(clients: list[RawClient], sent: list[bytes], requests: int) -> list[float]:
    """The time of a request with each client, in seconds: the tenth percentile, because the others
    have waited for a processor that something else used."""
    times: list[list[float]] = [[] for _ in clients]
    for number in range(requests):
        data = sent[number % len(sent)]
        # The sides take turns to go first.
        for side in (0, 1) if number % 2 else (1, 0):
            started = time.perf_counter()
            response = await clients[side].send(data)
            times[side].append(time.perf_counter() - started)
            if response.status != 201:
                sys.exit(f"A request failed: {response.label}")
    return [statistics.quantiles(each, n=10)[0] for each in times]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=800)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    raise SystemExit(asyncio.run(main(options.requests, options.rounds)))
