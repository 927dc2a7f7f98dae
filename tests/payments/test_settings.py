"""The operator's settings for payments, and passing them to another process."""

from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from rota.platform.issuer import Issuer
from rota.platform.settings import Settings
from tests.service import environment

PRODUCTION: dict[str, Any] = {
    "env": "production",
    "secret_key": SecretStr("bm90LXRoZS1kZXZlbG9wbWVudC1rZXktYXQtYWxsISE="),
    "audit_key": SecretStr("bm90LXRoZS1hdWRpdC1rZXktb2YtZGV2ZWxvcGVycyE="),
    "oidc_issuers": (Issuer(issuer="https://login.example", client_id="rota"),),
    "metrics_port": 9090,
    "public_url": "https://rota.example",
}


def test_in_production_an_api_key_needs_a_webhook_secret() -> None:
    assert Settings(**PRODUCTION).stripe_secret_key is None
    with pytest.raises(ValidationError, match="ROTA_STRIPE_WEBHOOK_SECRETS"):
        Settings(**PRODUCTION, stripe_secret_key=SecretStr("sk_live_x"))
    Settings(
        **PRODUCTION,
        stripe_secret_key=SecretStr("sk_live_x"),
        stripe_webhook_secrets=(SecretStr("whsec_x"),),
    )


def test_the_return_url_is_the_page_about_money_by_default() -> None:
    assert Settings(public_url="https://rota.example").return_url == "https://rota.example/money"
    elsewhere = "https://app.example/money"
    assert Settings(billing_return_url=elsewhere).return_url == elsewhere


def test_another_process_gets_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(
        stripe_secret_key=SecretStr("sk_test_x"),
        stripe_webhook_secrets=(SecretStr("whsec_1"), SecretStr("whsec_2")),
        stripe_api_url="http://127.0.0.1:8088",
        billing_return_url="https://app.example/money",
    )
    for name, value in environment(settings).items():
        monkeypatch.setenv(name, value)
    assert Settings() == settings
    assert "whsec_1" not in repr(settings)
