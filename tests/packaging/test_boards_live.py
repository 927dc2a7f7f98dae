"""Every query of the boards returns data from a running stack. `make monitoring` runs this."""

import asyncio
import json
import math
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from rota.dev.stack import Stack
from tests.chaos.world import World
from tests.mcp.conftest import LOCAL, connect
from tests.mcp.peers import Peer
from tests.packaging.board_queries import MONITORING, board_queries
from tests.runs.runner import until
from tests.runs.scripted import says
from tests.schedules.world import WEEKLY
from tests.service import Person, free_port

prometheus = shutil.which("prometheus")
needs_prometheus = pytest.mark.skipif(
    prometheus is None or not os.environ.get("ROTA_TEST_MONITORING"),
    reason="boards were NOT tested on a running stack: run `make monitoring`, with Prometheus",
)
SCHEMA = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}


class Asked:
    """Prometheus, which scrapes the stack every second."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.AsyncClient(base_url=f"{self.url}/api/v1", timeout=30)

    async def query(self, expression: str) -> list[float]:
        answer = await self.http.get("/query", params={"query": expression})
        assert answer.status_code == 200, f"{expression}: {answer.text}"
        values = [float(each["value"][1]) for each in answer.json()["data"]["result"]]
        return [value for value in values if not math.isnan(value)]

    async def targets_up(self) -> float:
        """How many processes it reaches. None while it starts."""
        try:
            answer = await self.http.get(f"{self.url}/-/ready")
        except httpx.TransportError:
            return 0
        return sum(await self.query("up")) if answer.status_code == 200 else 0

    async def firing(self) -> list[dict[str, Any]]:
        alerts = (await self.http.get("/alerts")).json()["data"]["alerts"]
        return [each["labels"] for each in alerts if each["state"] == "firing"]

    @classmethod
    @asynccontextmanager
    async def start(cls, folder: Path, jobs: dict[str, int]) -> AsyncIterator["Asked"]:
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "2s"},
            "rule_files": [str(MONITORING / "rules" / "*.yaml")],
            "scrape_configs": [
                {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
                for job, port in jobs.items()
            ],
        }
        file, port = folder / "prometheus.yaml", free_port()
        file.write_text(yaml.safe_dump(config))
        assert prometheus
        process = await asyncio.create_subprocess_exec(
            prometheus,
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        )
        asked = cls(port)
        try:
            yield asked
        finally:
            await asked.http.aclose()
            process.terminate()
            await process.wait()


async def work(world: World, person: Person, url: str) -> None:
    """Something of everything that the boards show."""
    server = await connect(person, url)
    script = await world.six_steps()
    answers = await world.scripted.script(says('{"total": 1}'))
    tasks = [
        await world.create(person, "hasty", script),
        await world.create(person, "writer", answers, outputSchema=SCHEMA),
        await world.create(person, "hasty", script),
    ]
    for task in tasks:
        await world.until(person, task, "COMPLETED", "FAILED")
    await person.post(f"/api/mcp/{server['id']}/ping")
    await person.get("/api/tasks/task_unknown")


@needs_prometheus
async def test_every_panel_has_data_and_no_alert_fires_on_a_healthy_stack(
    stack: Stack, tmp_path: Path
) -> None:
    async with (
        World.start(stack, "boards", workers=1, egress_allow=LOCAL) as world,
        Peer().serve() as peer,
    ):
        [worker] = world.workers
        jobs = {"rota-serve": world.settings.port, "rota-worker": worker.port}
        person = await world.newcomer()
        body = {**WEEKLY, "cron": "* * * * *"}
        scheduled = await person.post("/api/schedules", body)
        assert scheduled.status_code == 201, scheduled.text
        async with Asked.start(tmp_path, jobs) as asked:
            await until(asked.targets_up, lambda up: up == len(jobs))
            empty: dict[str, str] = {}

            async def all_have_data() -> bool:
                await work(world, await world.newcomer(), peer.url)
                empty.clear()
                for name, query in board_queries():
                    if not await asked.query(query.replace("$__rate_interval", "2m")):
                        empty[f"{name}: {query}"] = "no data"
                return not empty

            try:
                await until(all_have_data, deadline_s=240)
            except AssertionError as error:
                raise AssertionError(json.dumps(empty, indent=1)) from error
            print(f"{len(board_queries())} queries return data")
            assert await asked.firing() == []
