"""Traces: where a task's time went, from the request through the worker to the model.

Off unless a collector is named; then spans go to it by OTLP. A span carries
ids, names and numbers, and never a text of a customer's.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind

_tracer = trace.get_tracer("rota")
_enabled = False


def configure(endpoint: str | None, process: str) -> None:
    """Sends spans of this process to the collector at `endpoint`, if there is one."""
    global _enabled
    if endpoint is None:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": process}))
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    _enabled = True


def enabled() -> bool:
    return _enabled


def here() -> str | None:
    """The W3C `traceparent` of the current span, for whoever goes on with the work."""
    if not _enabled:
        return None
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent")


@contextmanager
def span(
    name: str,
    *,
    parent: str | None = None,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, str | int | float] | None = None,
) -> Iterator[Span]:
    """A span below the current one, or below the one that `parent` names."""
    context = propagate.extract({"traceparent": parent}) if parent else None
    with _tracer.start_as_current_span(
        name,
        context=context,
        kind=kind,
        attributes=dict(attributes or {}),
        # What an exception says can be a text of a customer's.
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        yield current
