"""Redis and Temporal."""

from collections.abc import AsyncIterator

from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.service import RPCError

from rota.doctor.finding import Finding, detail, failed, ok, warning
from rota.platform import redis as redis_clients
from rota.platform.settings import Settings
from rota.platform.temporal import Temporal
from rota.runs.contracts import SLICES_QUEUE

OLDEST_REDIS = (6, 2)


async def check_redis(settings: Settings) -> AsyncIterator[Finding]:
    url, ca_file = settings.redis_url.get_secret_value(), settings.redis_ca_file
    client = redis_clients.connect(url, ca_file, socket_connect_timeout=5, socket_timeout=5)
    try:
        await redis_clients.check(client)
        version = str((await client.info("server"))["redis_version"])
    except AuthenticationError as error:
        yield failed(
            "redis",
            f"Redis refuses the login ({detail(error)}). Correct the user and the password in "
            "ROTA_REDIS_URL.",
        )
    except NoPermissionError:
        yield ok("redis", "responds; its version is not readable")
    except (RedisError, OSError) as error:
        fix = (
            "If a private authority signed its certificate, set ROTA_REDIS_CA_FILE."
            if "CERTIFICATE_VERIFY_FAILED" in str(error)
            else "Correct ROTA_REDIS_URL, use rediss:// if Redis expects TLS, and check that it "
            "runs. Without it, limits are not exact and live events are late."
        )
        yield failed("redis", f"Redis does not respond ({detail(error)}). {fix}")
    else:
        numbers = tuple(int(part) for part in version.split(".")[:2])
        if numbers < OLDEST_REDIS:
            yield failed("redis", f"Redis {version} is too old. Use 6.2 or newer.")
        else:
            yield ok("redis", f"Redis {version}")
    finally:
        await client.aclose()


async def check_temporal(temporal: Temporal, settings: Settings) -> AsyncIterator[Finding]:
    try:
        await temporal.check_namespace()
        client = await temporal.client()
        found = await client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=settings.temporal_namespace,
                task_queue=TaskQueue(name=SLICES_QUEUE),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
            )
        )
    except (RPCError, RuntimeError) as error:
        fix = (
            "If a private authority signed its certificate, set ROTA_TEMPORAL_TLS_CA_FILE."
            if "UnknownIssuer" in str(error)
            else "Correct ROTA_TEMPORAL_ADDRESS, set ROTA_TEMPORAL_TLS=true if it expects TLS, and "
            "check that it runs."
        )
        yield failed(
            "temporal",
            f"Temporal does not respond at {settings.temporal_address} ({detail(error)}). {fix}",
        )
        return
    yield ok("temporal", f"namespace {settings.temporal_namespace}")
    if found.pollers:
        yield ok("workers", "at least one worker takes work")
    else:
        yield warning("workers", "No worker takes work. Start one: rota worker")
