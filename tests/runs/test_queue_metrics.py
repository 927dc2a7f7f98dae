"""Workers report how long work waits in Temporal."""

from uuid import uuid4

from prometheus_client import REGISTRY
from temporalio.client import Client

from rota.dev.stack import Stack
from rota.runs import queue_metrics
from rota.runs.contracts import SLICES_QUEUE
from tests.runs.runner import new_namespace, until


def reported(name: str) -> float:
    value = REGISTRY.get_sample_value(name, {"queue": SLICES_QUEUE})
    assert value is not None
    return value


async def test_work_that_no_worker_takes_makes_the_queue_older(stack: Stack) -> None:
    address = stack.endpoints.temporal_address
    namespace = f"queue-{uuid4().hex[:8]}"
    await new_namespace(address, namespace)
    client = await Client.connect(address, namespace=namespace)
    await queue_metrics.measure(client)
    assert (reported("rota_queue_backlog"), reported("rota_queue_age_seconds")) == (0, 0)
    for number in range(3):
        await client.start_workflow("Waits", id=f"waits-{number}", task_queue=SLICES_QUEUE)

    async def is_reported() -> bool:
        await queue_metrics.measure(client)
        return reported("rota_queue_backlog") == 3 and reported("rota_queue_age_seconds") > 0

    await until(is_reported)
