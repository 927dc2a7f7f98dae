"""Traces, exported to an OTLP collector."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rota.dev.stack import Stack
from rota.platform.settings import Settings
from tests.runs.runner import Runner, until
from tests.runs.scripted import Scripted, calls, says
from tests.service import Person, free_port, serving

PLANTED = "PLANTED-IN-THE-INPUT"


class Collector:
    def __init__(self, url: str) -> None:
        self.url = url
        self.received = b""
        self.spans: list[Span] = []

    async def take(self, request: Request) -> Response:
        body = await request.body()
        self.received += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return Response(b"", media_type="application/x-protobuf")


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    port = free_port()
    collector = Collector(f"http://127.0.0.1:{port}")
    app = Starlette(routes=[Route("/v1/traces", collector.take, methods=["POST"])])
    async with serving(app, Settings(port=port)):
        yield collector


async def test_one_trace_covers_the_request_the_model_and_the_tool_without_their_text(
    stack: Stack, scripted: Scripted, tmp_path: Path
) -> None:
    script = await scripted.script(calls(("desk__lookup", {"ref": PLANTED})), says("Done."))
    async with (
        collecting() as collector,
        Runner.start(
            stack, scripted, "traced", tmp_path / "log", otlp_endpoint=collector.url
        ) as runner,
        runner.service.process() as api,
    ):
        person = await runner.newcomer()
        visitor = Person(api, person.subject, person.token, person.user_id)
        task = await runner.begin(visitor, "writer", script, description=PLANTED)
        await runner.until(person, task, "COMPLETED")

        async def names() -> set[str]:
            roots = {s.trace_id for s in collector.spans if s.name == "POST /api/tasks"}
            assert len(roots) <= 1
            return {span.name for span in collector.spans if span.trace_id in roots}

        wanted = {"POST /api/tasks", "think", "act", "model scripted", "tool desk/lookup"}
        await until(names, lambda seen: seen >= wanted)
    assert PLANTED.encode() not in collector.received
