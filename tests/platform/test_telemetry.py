"""Logging: which values are hidden, and how the logs of libraries are formatted."""

import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from rota.platform.telemetry import HIDDEN, configure_logging, redact

KEY = "rota_" + "a1B2" * 9 + "zz"
TOKEN = "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"


def hide(**event: Any) -> dict[str, Any]:
    return dict(redact(None, "info", event))


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "Authorization",
        "set-cookie",
        "password",
        "id_token",
        "apiKey",
        "secret_key",
    ],
)
def test_a_field_with_a_secret_name_is_hidden(name: str) -> None:
    for value in ("x", 1, None, ["x"], {"a": "x"}):
        assert hide(**{name: value}) == {name: HIDDEN}


@pytest.mark.parametrize(
    "secret",
    [
        KEY,
        TOKEN,
        TOKEN.rpartition(".")[0] + ".",
        "sk_live_51Hx0aB2c3D4",
        "sk_test_51Hx0aB2c3D4",
        "rk_live_51Hx0aB2c3D4",
        "whsec_5f0c7a529c0e4d0b",
        "whsec_/cuV3bA8o1ct+kRqC/THfWHh3KQoJK==",
        "sk-proj-5f0c7a529c0e4d0b5f0c",
        "sk-ant-api03-5f0c7a529c0e4d0b",
        "AIza" + "5f0c7a529c0e4d0b" * 2,
    ],
)
def test_a_secret_is_hidden_inside_other_values(secret: str) -> None:
    for value in (
        f"before {secret} after",
        f"/api/keys/{secret}",
        [f"x={secret}"],
        {"deep": ({"er": secret},)},
        ValueError(f"bad {secret}"),
    ):
        assert secret not in str(hide(value=value))
        assert HIDDEN in str(hide(value=value))


def test_the_text_after_bearer_is_hidden() -> None:
    assert hide(text="Bearer abc, bearer def") == {"text": f"Bearer {HIDDEN} bearer {HIDDEN}"}


def test_passwords_in_urls_are_hidden() -> None:
    assert hide(url="redis://:pass@host/0") == {"url": f"redis://{HIDDEN}@host/0"}
    assert hide(url="postgresql://rota:pass@host/db") == {"url": f"postgresql://{HIDDEN}@host/db"}
    assert hide(url="https://example.test/a:b@c") == {"url": "https://example.test/a:b@c"}


@pytest.mark.parametrize(
    "start", ["eyJ", "rota_a_", "sk_live", "whsec_", "sk-", "AIza", "Bearer ", "://", "://a:"]
)
def test_no_text_takes_long_to_search(start: str) -> None:
    """A client chooses the path of a request, and the whole process waits while it is logged."""
    started = time.process_time()
    hide(path=start * 20_000)
    assert time.process_time() - started < 0.25


def test_other_values_are_not_changed() -> None:
    event = {"status": 200, "ms": 1.5, "path": "/api/me", "account": None, "degraded": False}
    assert hide(**event) == event
    assert hide(names={"b"}) == {"names": ["b"]}


@pytest.fixture
def restored() -> Iterator[None]:
    """Restores the logging configuration after the test."""
    before = structlog.get_config()
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.configure(**before)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.mark.usefixtures("restored")
def test_logs_of_libraries_are_json_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output))
    configure_logging("INFO", "json")
    logging.getLogger("library").warning("key %s", KEY)
    logging.getLogger("library").info("below the level")
    try:
        raise ValueError(f"Bearer {TOKEN}")
    except ValueError:
        logging.getLogger("library").exception("failed")
    structlog.get_logger().debug("below_the_level")
    structlog.get_logger().info("logged", at=object)
    warning, failure, logged = [json.loads(line) for line in output.getvalue().splitlines()]
    assert (warning["event"], warning["logger"]) == (f"key {HIDDEN}", "library")
    assert f"Bearer {HIDDEN}" in failure["exception"]
    assert logged["at"] == "<class 'object'>"


@pytest.mark.usefixtures("restored")
def test_the_console_format_hides_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    configure_logging("DEBUG", "console")
    structlog.get_logger().debug("logged", key=KEY)
    assert "logged" in output.getvalue()
    assert KEY not in output.getvalue()
