"""Webhooks are accepted from Rota, for this receiver, in time, and otherwise not."""

import base64
import hmac
import json
import re
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette import datastructures
from werkzeug import datastructures as werkzeug
from werkzeug.test import EnvironBuilder

from rota_sdk import errors, webhooks
from tests.packaging.installed import REPOSITORY

SECRET = "whsec_" + base64.b64encode(b"a secret of twenty-four").decode()
PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = "whpk_" + base64.b64encode(PRIVATE.public_key().public_bytes_raw()).decode()
BODY = json.dumps(
    {
        "id": "evt_01a1dd19761f707a96968f9300f7529d",
        "sequence": 42,
        "type": "task.completed",
        "taskId": "task_01a1dd1976357476a72b4a77b701fd77",
        "data": {"status": "COMPLETED"},
        "createdAt": "2026-11-15T02:46:35.123Z",
        "accountId": "acct_1",
        "webhookId": "wh_1",
    }
).encode()


def signed(body: bytes = BODY, at: float | None = None, secret: str = SECRET) -> dict[str, str]:
    """The headers of a delivery."""
    stamp = str(int(time.time() if at is None else at))
    content = f"msg_1.{stamp}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    shared = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
    public = base64.b64encode(PRIVATE.sign(content)).decode()
    return {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": stamp,
        "Webhook-Signature": f"v1,{shared} v1a,{public}",
    }


@pytest.mark.parametrize(
    "key",
    [
        {"secret": SECRET},
        {"secret": ["whsec_AAAA", SECRET]},
        {"public_key": PUBLIC},
        {"public_key": [PUBLIC]},
    ],
)
def test_a_webhook_is_accepted(key: dict[str, Any]) -> None:
    event = webhooks.verify(BODY, signed(), webhook_id="wh_1", **key)
    assert (event.type, event.sequence, event.account_id) == ("task.completed", 42, "acct_1")


def test_a_test_of_a_receiver_can_sign_a_webhook() -> None:
    for body in (BODY, BODY.decode()):
        headers = webhooks.sign(body, secret=SECRET)
        assert webhooks.verify(body, headers, webhook_id="wh_1", secret=SECRET).sequence == 42
    published = webhooks.sign(
        '{"test": 2432232314}',
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
    )
    assert published["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    with pytest.raises(ValueError, match="is empty"):
        webhooks.sign(BODY, secret="whsec_")


def test_a_published_example_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signature is the example in the documentation of the scheme."""
    monkeypatch.setattr(time, "time", lambda: 1614265330)
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    # The signature passes, and then the body is not an event.
    with pytest.raises(errors.WebhookVerificationError, match="not an event"):
        webhooks.verify(b'{"test": 2432232314}', headers, webhook_id="wh_1", secret=secret)


@pytest.mark.parametrize("key", [{"secret": SECRET}, {"public_key": PUBLIC}])
@pytest.mark.parametrize(
    ("body", "changes", "reason"),
    [
        (BODY + b" ", {}, "No signature"),
        (BODY, {"Webhook-Id": "msg_2"}, "No signature"),
        (BODY, {"Webhook-Signature": "v2,AAAA v1 v1a,!"}, "No signature"),
        (BODY, {"Webhook-Signature": ""}, "No signature"),
        (BODY, {"Webhook-Signature": "v1,é v1a,é"}, "No signature"),
        (BODY, {"Webhook-Timestamp": "soon"}, "not a number"),
        (BODY, {"Webhook-Timestamp": "²"}, "not a number"),
        (BODY, {"Webhook-Timestamp": "1" * 5000}, "not a number"),
    ],
)
def test_a_changed_webhook_is_refused(
    key: dict[str, Any], body: bytes, changes: dict[str, str], reason: str
) -> None:
    with pytest.raises(errors.WebhookVerificationError, match=reason):
        webhooks.verify(body, signed() | changes, webhook_id="wh_1", **key)


@pytest.mark.parametrize("key", [{"secret": SECRET}, {"public_key": PUBLIC}])
def test_a_webhook_with_another_time_is_refused(key: dict[str, Any]) -> None:
    later = {"Webhook-Timestamp": str(int(time.time()) + 7)}
    with pytest.raises(errors.WebhookVerificationError, match="No signature"):
        webhooks.verify(BODY, signed() | later, webhook_id="wh_1", **key)


@pytest.mark.parametrize("key", [{"secret": SECRET}, {"public_key": PUBLIC}])
def test_a_delivery_to_another_receiver_is_refused(key: dict[str, Any]) -> None:
    with pytest.raises(errors.WebhookVerificationError, match="another receiver"):
        webhooks.verify(BODY, signed(), webhook_id="wh_2", **key)


@pytest.mark.parametrize("offset_s", [-400, 400])
def test_an_old_or_early_webhook_is_refused(offset_s: int) -> None:
    headers = signed(at=time.time() + offset_s)
    with pytest.raises(errors.WebhookVerificationError, match="too old"):
        webhooks.verify(BODY, headers, webhook_id="wh_1", secret=SECRET)


def test_a_body_can_be_text_and_headers_those_of_a_framework() -> None:
    headers = werkzeug.Headers(signed())
    event = webhooks.verify(BODY.decode(), headers, webhook_id="wh_1", secret=SECRET)
    assert event.sequence == 42
    starlette = datastructures.Headers(signed())
    assert webhooks.verify(BODY, starlette, webhook_id="wh_1", secret=SECRET) == event


class Flask:
    """What the example uses of Flask. The requests are those of Werkzeug, as in Flask."""

    routes: ClassVar[dict[str, Callable[[], tuple[str, int]]]] = {}

    def __init__(self, name: str) -> None:
        self.name = name

    def post(self, path: str) -> Callable[[Callable[[], tuple[str, int]]], None]:
        return lambda receive: self.routes.update({path: receive})


def test_the_example_with_flask_receives_webhooks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (REPOSITORY / "docs" / "webhooks.md").read_text()
    [code] = re.findall(r"^```python\n(import os\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    flask = SimpleNamespace(Flask=Flask, request=None)
    monkeypatch.setitem(sys.modules, "flask", flask)
    monkeypatch.setenv("ROTA_WEBHOOK_ID", "wh_1")
    monkeypatch.setenv("ROTA_WEBHOOK_SECRET", SECRET)
    example: dict[str, Any] = {"__name__": "example"}
    exec(code, example)
    for body, status in ((BODY, 204), (BODY + b" ", 400)):
        built = EnvironBuilder(
            path="/webhooks/rota", method="POST", headers=werkzeug.Headers(signed()), data=body
        )
        example["request"] = built.get_request()
        assert Flask.routes["/webhooks/rota"]()[1] == status
    assert capsys.readouterr().out == "42 task.completed\n"


@pytest.mark.parametrize("name", ["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"])
def test_a_missing_header_is_named(name: str) -> None:
    headers = {n: v for n, v in signed().items() if n != name}
    with pytest.raises(errors.WebhookVerificationError, match=name.lower()):
        webhooks.verify(BODY, headers, webhook_id="wh_1", secret=SECRET)


def test_a_key_is_needed_and_is_never_shown() -> None:
    with pytest.raises(ValueError, match="Pass the secret"):
        webhooks.verify(BODY, signed(), webhook_id="wh_1")
    with pytest.raises(ValueError, match="base64") as caught:
        webhooks.verify(BODY, signed(), webhook_id="wh_1", secret="whsec_top secret")
    assert "top secret" not in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        {"secret": ""},
        {"secret": "whsec_"},
        {"secret": [SECRET, ""]},
        {"secret": ["", SECRET]},
        {"public_key": "whpk_"},
        {"public_key": PUBLIC, "secret": ""},
    ],
)
def test_an_empty_key_is_refused(key: dict[str, Any]) -> None:
    # Anybody can sign with the empty secret.
    for headers in (signed(secret=""), signed()):
        with pytest.raises(ValueError, match="is empty"):
            webhooks.verify(BODY, headers, webhook_id="wh_1", **key)
