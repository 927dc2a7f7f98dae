"""Logs and metrics: one JSON line per event, Prometheus metrics, and no secrets in either."""

import logging
import re
import sys
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any

import orjson
import structlog
from prometheus_client import Counter, Gauge, Histogram, start_http_server

from rota.platform import clock, tracing
from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused
from rota.platform.start_log import log_start

REQUESTS = Counter(
    "rota_http_requests_total",
    "HTTP requests.",
    ["method", "route", "status"],
)
REQUEST_SECONDS = Histogram(
    "rota_http_request_seconds",
    "Seconds from the start of a request to the end of its response, without those that it waited "
    "for other expensive requests of its account.",
    ["route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
REQUESTS_IN_PROGRESS = Gauge(
    "rota_http_requests_in_progress", "HTTP requests in progress, event streams among them."
)

HIDDEN = "[hidden]"
_PLAIN = frozenset((str, int, float, bool, type(None)))
_SECRET_NAMES = re.compile(
    r"authorization|cookie|password|secret|token|api_?key|private|credential", re.IGNORECASE
)
# API keys, keys and webhook secrets of the payment processor, keys of model providers, JSON web
# tokens, the text after "Bearer", and passwords in URLs. Texts of clients are searched too, so each
# alternative must take linear time: after its first characters, it finds its end or fails at once.
_SECRET_TEXTS = re.compile(
    r"rota_(?:[a-z0-9]{1,16}_)?[0-9A-Za-z]{20,}|[sr]k_(?:live|test)_\w+|whsec_[\w+/=-]+|(?<!\w)sk-[\w-]{16,}|AIza[\w-]{30,}|eyJ[\w-]{8,}(?:\.[\w-]*){0,2}"
    r"|(?<=[Bb]earer )\S+|(?<=://)[^/@\s:]*:[^/@\s]+(?=@)"
)


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return _SECRET_NAMES.search(name) is not None


def _may_hold_secret(text: str) -> bool:
    """A cheap check first: nearly all texts contain no secret. Each alternative of _SECRET_TEXTS
    needs one of these."""
    return (
        "rota_" in text
        or "k_live_" in text
        or "k_test_" in text
        or "whsec_" in text
        or "sk-" in text
        or "AIza" in text
        or "eyJ" in text
        or "earer " in text
        or "://" in text
    )


def _without_secrets(name: str, value: Any) -> Any:
    if _is_secret(name):
        return HIDDEN
    if isinstance(value, str):
        return _SECRET_TEXTS.sub(HIDDEN, value) if _may_hold_secret(value) else value
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): _without_secrets(str(key), item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_without_secrets("", item) for item in value]
    return _without_secrets("", str(value))


def without_secrets(text: str) -> str:
    return _SECRET_TEXTS.sub(HIDDEN, text)


def redact(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if _needs_care(event):
        for name, value in event.items():
            event[name] = _without_secrets(name, value)
    return event


def _needs_care(event: MutableMapping[str, Any]) -> bool:
    """Nearly no event does. All its texts are checked together, which is faster than one by one."""
    for name, value in event.items():
        if type(value) not in _PLAIN or _is_secret(name):
            return True
    return _may_hold_secret(" ".join([value for value in event.values() if type(value) is str]))


def add_time(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["timestamp"] = clock.now().isoformat(timespec="microseconds").replace("+00:00", "Z")
    return event


def _to_json(event: Any, **_: Any) -> bytes:
    return orjson.dumps(event, default=str)


def configure_logging(level: str, fmt: str) -> None:
    """Sets up structlog for the process, and sends the standard library's logs through it."""
    minimum = logging.getLevelNamesMapping()[level]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        add_time,
        structlog.processors.format_exc_info,
        redact,
    ]
    if fmt == "json":
        renderer: Any = structlog.processors.JSONRenderer(serializer=_to_json)
        factory: Any = structlog.BytesLoggerFactory(sys.stdout.buffer)
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stdout.isatty())
        factory = structlog.PrintLoggerFactory(sys.stdout)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(minimum),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )
    handler = _ToStructlog()
    logging.basicConfig(handlers=[handler], level=max(minimum, logging.WARNING), force=True)


class _ToStructlog(logging.Handler):
    """Sends the standard library's log records to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(
            record.levelno,
            record.getMessage(),
            logger=record.name,
            exc_info=record.exc_info,
        )


def observe(settings: Settings, process: str) -> None:
    """Sets up the logs and traces of a process, and logs its configuration."""
    configure_logging(settings.log_level, settings.log_format)
    log_start(settings, process)
    try:
        tracing.configure(settings.otlp_endpoint, process)
    except ImportError as error:
        raise StartRefused(
            "ROTA_OTLP_ENDPOINT needs a package: pip install 'rota[tracing]'"
        ) from error


def serve_metrics(settings: Settings) -> None:
    """Serves /metrics on a port of its own, if the settings have one."""
    if settings.metrics_port is None:
        return
    try:
        start_http_server(settings.metrics_port, addr=settings.host)
    except OSError as error:
        raise StartRefused(
            f"Cannot listen on {settings.host}, port {settings.metrics_port} ({error.strerror}). "
            "Set ROTA_METRICS_PORT to a port that is free. A worker on the same machine needs "
            "another one: ROTA_WORKER_PORT."
        ) from error
