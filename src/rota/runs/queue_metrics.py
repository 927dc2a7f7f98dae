"""How long work waits in Temporal for a worker. Autoscalers and alerts use it."""

from prometheus_client import Gauge
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from rota.runs.contracts import SLICES_QUEUE, TASK_QUEUE

AGE_SECONDS = Gauge(
    "rota_queue_age_seconds",
    "How long the oldest work in a task queue of Temporal has waited for a worker.",
    ["queue"],
)
BACKLOG = Gauge(
    "rota_queue_backlog", "Work in a task queue of Temporal that waits for a worker.", ["queue"]
)

QUEUES = (SLICES_QUEUE, TASK_QUEUE)
_TYPES = (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY)


async def measure(client: Client) -> None:
    """Sets the gauges from what Temporal reports. Every worker reports the same."""
    for queue in QUEUES:
        waiting, age_s = 0, 0.0
        for queue_type in _TYPES:
            found = await client.workflow_service.describe_task_queue(
                DescribeTaskQueueRequest(
                    namespace=client.namespace,
                    task_queue=TaskQueue(name=queue),
                    task_queue_type=queue_type,
                    report_stats=True,
                )
            )
            waiting += found.stats.approximate_backlog_count
            age_s = max(age_s, found.stats.approximate_backlog_age.ToTimedelta().total_seconds())
        BACKLOG.labels(queue).set(waiting)
        AGE_SECONDS.labels(queue).set(age_s if waiting else 0)
