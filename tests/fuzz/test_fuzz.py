"""Schemathesis reads the OpenAPI description and searches for responses that contradict it.

`ROTA_FUZZ_SEED` changes the seed.
"""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from rota.agents.files import catalog_folder
from rota.agents.sync import sync
from rota.dev.stack import Stack
from rota.notifications import service as notifications
from tests.payments.stripe_server import StripeServer
from tests.service import Service
from tests.sizes import size

EXAMPLES = str(size(4, 500))
# Hours of requests share the machine with other work.
TIMEOUT_S = str(size(10, 60))
CONFIG = Path(__file__).with_name("schemathesis.toml")
SEED = os.environ.get("ROTA_FUZZ_SEED", "20261101")
HIGHEST_TIER = {"a": "enterprise", "b": "business"}
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "acceptance_except_rules",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
    "ignored_auth",
)


async def test_every_response_to_generated_requests_matches_the_description(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each of 500 requests would wait until the last test message is ten seconds old.
    monkeypatch.setattr(notifications, "TEST_EVERY", timedelta(0))
    async with _service(stack, "a") as a, _service(stack, "b") as b, asyncio.TaskGroup() as group:
        group.create_task(_fuzz(a, tmp_path))
        group.create_task(_fuzz(b, tmp_path))


@asynccontextmanager
async def _service(stack: Stack, variant: str) -> AsyncIterator[Service]:
    async with (
        StripeServer.start(variant=variant) as stripe,
        Service.start(
            stack,
            variant=variant,
            name=f"fuzz_{variant}",
            trusted_proxies=("127.0.0.1",),
            **stripe.settings,
        ) as service,
    ):
        await sync(service.database_url, catalog_folder())
        yield service


async def _fuzz(service: Service, folder: Path) -> None:
    person = await service.sign_in()
    async with service.owner() as connection:
        await connection.execute(
            "UPDATE accounts SET tier = $1 WHERE id = $2",
            HIGHEST_TIER[service.variant],
            person.user_id,
        )
    url = f"http://127.0.0.1:{service.settings.port}"
    # An event stream does not end, so its response cannot be checked.
    paths = (await service.http.get("/openapi.json")).json()["paths"]
    streams = [
        path
        for path, item in paths.items()
        if "text/event-stream"
        in item.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
    ]
    schemathesis = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("schemathesis"),
        "--config-file",
        CONFIG,
        "run",
        f"{url}/openapi.json",
        "--phases",
        "examples,coverage,fuzzing,stateful",
        "--checks",
        ",".join(CHECKS),
        "--max-examples",
        EXAMPLES,
        "--seed",
        SEED,
        "--continue-on-failure",
        *[word for path in streams for word in ("--exclude-path", path)],
        "--generation-allow-x00",
        "false",
        "--generation-database",
        "none",
        # Wait as long as a 429 response asks for.
        "--rate-limit",
        "auto",
        "--request-timeout",
        TIMEOUT_S,
        "--no-color",
        cwd=folder,
        env=os.environ
        | {
            "SCHEMATHESIS_HOOKS": "tests.fuzz.hooks",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "FUZZ_SERVICE_URL": url,
            "FUZZ_ISSUER_URL": service.stack.endpoints.issuer_url,
            "FUZZ_TOKEN": person.token,
            "FUZZ_SUBJECT": person.subject,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await schemathesis.communicate())[0].decode()
    assert schemathesis.returncode == 0, f"variant {service.variant}: {output}"
    # Requests without a session would prove little.
    _, _, refused = output.partition("401 Unauthorized")
    refused_only = re.findall(r"^\s+- ([A-Z]+ /\S+)$", refused.partition("💡")[0], re.MULTILINE)
    assert set(refused_only) <= {"POST /api/auth/session"}, output
    print(f"variant {service.variant}:{output.rpartition(' SUMMARY ')[2]}")
    assert (await service.http.get("/health/live")).status_code == 200
