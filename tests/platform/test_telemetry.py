"""Logging itself: what is hidden, and how other libraries' lines join ours."""

import io
import json
import logging
import sys
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
def test_a_field_with_a_telling_name_is_hidden_whatever_it_holds(name: str) -> None:
    for value in ("x", 1, None, ["x"], {"a": "x"}):
        assert hide(**{name: value}) == {name: HIDDEN}


@pytest.mark.parametrize("secret", [KEY, TOKEN, TOKEN.rpartition(".")[0] + "."])
def test_a_secret_is_hidden_wherever_it_stands(secret: str) -> None:
    for value in (
        f"before {secret} after",
        f"/api/keys/{secret}",
        [f"x={secret}"],
        {"deep": ({"er": secret},)},
        ValueError(f"bad {secret}"),
    ):
        assert secret not in str(hide(value=value))
        assert HIDDEN in str(hide(value=value))


def test_whatever_follows_bearer_is_hidden() -> None:
    assert hide(text="Bearer abc, bearer def") == {"text": f"Bearer {HIDDEN} bearer {HIDDEN}"}


def test_passwords_in_addresses_are_hidden() -> None:
    assert hide(url="redis://:pass@host/0") == {"url": f"redis://{HIDDEN}@host/0"}
    assert hide(url="postgresql://rota:pass@host/db") == {"url": f"postgresql://{HIDDEN}@host/db"}
    assert hide(url="https://example.test/a:b@c") == {"url": "https://example.test/a:b@c"}


def test_everything_else_is_left_as_it_is() -> None:
    event = {"status": 200, "ms": 1.5, "path": "/api/me", "account": None, "degraded": False}
    assert hide(**event) == event
    assert hide(names={"b"}) == {"names": ["b"]}


@pytest.fixture
def restored() -> Iterator[None]:
    """Logging as it was before."""
    before = structlog.get_config()
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.configure(**before)
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.mark.usefixtures("restored")
def test_lines_of_other_libraries_are_lines_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output))
    configure_logging("INFO", "json")
    logging.getLogger("library").warning("key %s", KEY)
    logging.getLogger("library").info("too quiet to be heard")
    try:
        raise ValueError(f"Bearer {TOKEN}")
    except ValueError:
        logging.getLogger("library").exception("failed")
    structlog.get_logger().debug("too quiet as well")
    structlog.get_logger().info("said", at=object)
    warning, failure, said = [json.loads(line) for line in output.getvalue().splitlines()]
    assert (warning["event"], warning["logger"]) == (f"key {HIDDEN}", "library")
    assert f"Bearer {HIDDEN}" in failure["exception"]
    assert said["at"] == "<class 'object'>"


@pytest.mark.usefixtures("restored")
def test_people_can_have_lines_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    configure_logging("DEBUG", "console")
    structlog.get_logger().debug("said", key=KEY)
    assert "said" in output.getvalue()
    assert KEY not in output.getvalue()
