"""The short forms of what `make scale` measures, and the capacity model."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from rota.composition import Composition
from rota.dev.stack import Stack
from tests.load import bursts
from tests.load.fleet import PARTS, Fleet
from tests.load.meter import measure
from tests.load.model import BENCHMARK, COSTS, WRITTEN, Load, Model, documented, limits
from tests.load.raw_http import request
from tests.runs.scripted import says
from tests.service import Service

BURN = "import time\nwhile time.process_time() < 0.3: pass"


async def test_the_time_of_children_that_ended_counts() -> None:
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        '"$0" -c "$1"; echo done; read wait',
        sys.executable,
        BURN,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdin
    async with asyncio.timeout(30):
        assert await process.stdout.readline() == b"done\n"
        parts = measure({"shell": [process.pid], "all": [os.getpid()], "gone": [2**22]})
        process.stdin.close()
        await process.wait()
    assert 250 < parts["shell"].cpu_ms < 3_000
    # The shell is one of this process's children.
    assert parts["all"].cpu_ms >= parts["shell"].cpu_ms
    assert parts["gone"].cpu_ms == 0


def costs(**operations: float) -> dict[str, Any]:
    """Costs in which every part takes as many milliseconds, and as much is written."""
    names = ("task", "approved task", "further model call", "tool call", "me")
    return {
        "operations": {
            name: {
                "cpuMs": dict.fromkeys((*PARTS, BENCHMARK), operations.get(name, 0)),
                **dict.fromkeys(WRITTEN, operations.get(name, 0) * 100),
                "perSecond": 20,
            }
            for name in names
        },
        "idle": {"cpuMsPerSecond": dict.fromkeys(PARTS, 0)},
        "historyEvents": 12,
        "machine": {"processors": 2},
    }


def test_a_task_costs_the_sum_of_its_parts() -> None:
    operations = {"approved task": 15.0, "further model call": 4.0, "tool call": 2.0, "me": 1.0}
    measured = costs(task=10.0, **operations)
    model = Model(measured)
    load = Load(model_calls=3, tool_calls=4, approvals=0.2, requests={"me": 5})
    one = model.task(load)
    # 10, two further model calls, four tool calls, a fifth of an approval, five requests.
    assert one.cpu_ms["worker"] == pytest.approx(10 + 8 + 8 + 1 + 5)
    assert one.written["walBytes"] == pytest.approx(3_200)
    # Six parts with the benchmark, on two processors. 20 tasks per second made them 0.6 busy, and
    # as many approved ones 0.9.
    assert model.throughput(load) == pytest.approx((0.6 + 0.9) / 2 * 2_000 / (32 * 6))
    # A further call that takes only the worker, which is one process: 100 ms beside its 10.
    for part in (*PARTS, BENCHMARK):
        measured["operations"]["further model call"]["cpuMs"][part] = 100 * (part == "worker")
    busy = Model(measured).throughput(Load(model_calls=2))
    assert busy == pytest.approx((0.6 + 0.9) / 2 * 1_000 / 110)


def test_a_prediction_grows_with_the_load_and_names_what_breaks_first() -> None:
    model = Model(costs(task=10.0))
    slow, fast = (model.predict(Load(rate)) for rate in (1, 1_000))
    assert (slow.serves, slow.workers, slow.connections) == (1, 1, 20)
    # A process is full at 0.7 of a processor, or a worker at 50 runs of 10 s each.
    assert (fast.serves, fast.workers) == (15, 200)
    assert fast.stored_gb_per_day == pytest.approx(1_000 * 1_000 * 86_400 / 1e9)
    assert all(limit.share <= 1 for limit in limits(slow))
    shares = [limit.share for limit in limits(fast)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 1


def test_the_page_has_what_the_model_predicts_from_the_measured_costs() -> None:
    page = Path("docs/scale.md").read_text()
    for row in documented(Model.load(COSTS)):
        assert row in page, (
            f"docs/scale.md is stale. Run: python -m tests.load.model --tables\n{row}"
        )


@pytest.mark.long
async def test_every_part_of_a_deployment_is_metered(stack: Stack) -> None:
    async with Fleet.of(stack, "metered", serves=2) as fleet:
        people = await fleet.people(4)
        script = await fleet.scripted.script(says("Done."))
        async with fleet.metered(30) as result:
            await fleet.tasks(people, script, 30, at_once=8)
        [found] = result
        assert all(found.cpu_ms(part) > 0 for part in ("serve", "worker", "postgres", "temporal"))
        # Creating a task, starting it, and ending it are transactions of their own.
        assert found.summary()["transactionIds"] >= 3
        assert found.summary()["walBytes"] > 1_000
        sent = [request("GET", "/api/me", person.token) for person in people]
        async with fleet.metered(200) as result:
            await fleet.send(sent, 200, 8, 200)
        assert result[0].cpu_ms("serve") < found.cpu_ms("serve", "worker")
        updates = await fleet.updates()
        assert updates["tasks"]["inserted"] in range(31)


@pytest.mark.timed
async def test_an_instruction_costs_the_same_with_many_waiting(stack: Stack) -> None:
    async with (
        Service.start(stack, variant="a", name="bursts") as service,
        Composition(service.settings, pool_size=4) as parts,
    ):
        few = await bursts.burst(service, parts.db, bursts.FEW, 5)
        many = await bursts.burst(service, parts.db, 30_000, 5)
    assert many.ms <= bursts.TARGET * few.ms, (few, many)
