"""Traces of a task's time, from the request through the worker to the model.

Tracing is off unless a collector is configured. Spans are sent to it with OTLP. A span contains
IDs, names and numbers, and never a customer's text.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind

_tracer = trace.get_tracer("rota")
_enabled = False


def configure(endpoint: str | None, process: str) -> None:
    """Sends the spans of this process to the collector at `endpoint`, if one is given."""
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
    """The W3C `traceparent` of the current span, for the process that continues the work."""
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
    """A child of the current span, or of the span in the traceparent `parent`."""
    context = propagate.extract({"traceparent": parent}) if parent else None
    with _tracer.start_as_current_span(
        name,
        context=context,
        kind=kind,
        attributes=dict(attributes or {}),
        # The message of an exception can contain a customer's text.
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        yield current
