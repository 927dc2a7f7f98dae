"""What is outside of the installation: identity providers, Stripe, traces and the public URL."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx

from rota.auth import discovery
from rota.auth.discovery import Discovery
from rota.doctor.finding import Finding, detail, failed, ok, warning
from rota.notifications.channels import NotDelivered
from rota.notifications.smtp import SmtpMailer
from rota.payments.port import PaymentFailed
from rota.payments.processor import processor_of
from rota.platform.settings import Settings
from rota.variants import VARIANTS

# An ID that no payment has.
NO_PAYMENT = "pi_rota_doctor"


async def check_issuers(settings: Settings) -> AsyncIterator[Finding]:
    if not settings.oidc_issuers:
        yield warning(
            "issuers",
            "No identity provider is configured, so users cannot sign in. Set ROTA_OIDC_ISSUERS.",
        )
    async with httpx.AsyncClient(timeout=5, follow_redirects=False) as client:
        for issuer in settings.oidc_issuers:
            try:
                known = await Discovery(issuer.issuer, client).fetch()
                keys = (await discovery.get(client, known.jwks_uri))["keys"]
            except (httpx.HTTPError, ValueError, LookupError, TypeError) as error:
                fix = (
                    "This machine does not trust its certificate. Set SSL_CERT_FILE to a file with "
                    "the authority that signed it, for every process of Rota."
                    if "CERTIFICATE_VERIFY_FAILED" in str(error)
                    else "Correct `issuer` in ROTA_OIDC_ISSUERS: it is the URL before "
                    "/.well-known/openid-configuration, exactly as that document names it."
                )
                yield failed("issuers", f"{issuer.issuer} cannot be used ({detail(error)}). {fix}")
                continue
            if not keys:
                yield failed(
                    "issuers", f"{issuer.issuer} publishes no keys. Enable one at the issuer."
                )
            elif known.token_endpoint is None or known.authorization_endpoint is None:
                yield warning(
                    "issuers",
                    f"{issuer.issuer} has no https sign-in endpoints, so browsers cannot sign in. "
                    "Correct its configuration at the issuer.",
                )
            else:
                yield ok("issuers", f"{issuer.issuer}, client {issuer.client_id}")


async def check_payments(settings: Settings) -> AsyncIterator[Finding]:
    if settings.stripe_secret_key is None:
        lowest = VARIANTS[settings.variant].lowest_tier
        if settings.allowances.get(lowest, 0):
            yield ok("payments", "off; accounts spend their allowances")
        else:
            yield warning(
                "payments",
                f"New accounts cannot pay for tasks: Stripe is off, and the tier {lowest} has no "
                f"allowance. Set ROTA_ALLOWANCES='{{\"{lowest}\": 500}}', or "
                "ROTA_STRIPE_SECRET_KEY.",
            )
        return
    processor = processor_of(settings)
    try:
        await processor.payment(NO_PAYMENT)
    except PaymentFailed:
        yield failed(
            "payments",
            "Stripe does not respond or refuses the key. Correct ROTA_STRIPE_SECRET_KEY, and "
            "ROTA_STRIPE_API_URL if it is set.",
        )
        return
    finally:
        await processor.close()
    if settings.stripe_webhook_secrets:
        yield ok("payments", "Stripe accepts the key")
    else:
        yield failed(
            "payments",
            "Payments are never recorded without webhooks. Create one in Stripe for "
            f"{settings.public_url}/webhooks/stripe and set ROTA_STRIPE_WEBHOOK_SECRETS.",
        )


async def check_mail(settings: Settings) -> AsyncIterator[Finding]:
    if settings.smtp_host is None:
        yield ok("mail", "off; set ROTA_SMTP_HOST to send notifications by email")
        return
    at = f"{settings.smtp_host}:{settings.smtp_port}"
    try:
        await SmtpMailer(settings, limit_s=5).check()
    except NotDelivered as error:
        yield failed(
            "mail",
            f"{at}: {error.detail or error} Correct ROTA_SMTP_HOST, ROTA_SMTP_PORT, "
            "ROTA_SMTP_TLS, ROTA_SMTP_USER or ROTA_SMTP_PASSWORD.",
        )
        return
    yield ok("mail", f"{at} accepts email from {settings.smtp_from}")


async def check_tracing(settings: Settings) -> AsyncIterator[Finding]:
    if settings.otlp_endpoint is None:
        return
    if importlib.util.find_spec("opentelemetry.sdk") is None:
        yield failed("tracing", "ROTA_OTLP_ENDPOINT needs a package: pip install 'rota[tracing]'")
        return
    at = urlsplit(settings.otlp_endpoint)
    port = at.port or (443 if at.scheme == "https" else 80)
    try:
        _, writer = await asyncio.open_connection(at.hostname, port)
    except OSError as error:
        yield failed(
            "tracing",
            f"The collector does not respond at {at.hostname}:{port} ({detail(error)}). Correct "
            "ROTA_OTLP_ENDPOINT, or start the collector.",
        )
        return
    writer.close()
    yield ok("tracing", f"the collector responds at {at.hostname}:{port}")


async def check_public_url(settings: Settings) -> AsyncIterator[Finding]:
    url = f"{settings.public_url}/health/live"
    try:
        async with httpx.AsyncClient(timeout=5) as client:
            answer = await client.get(url)
            live = answer.is_success and answer.json() == {"status": "live"}
            why = f"status {answer.status_code}"
    except (httpx.HTTPError, ValueError) as error:
        live, why = False, detail(error)
    if live:
        yield ok("public url", f"{settings.public_url} is this service")
    else:
        yield warning(
            "public url",
            f"{url} does not respond as Rota does ({why}). Start `rota serve`, or correct "
            "ROTA_PUBLIC_URL or the proxy in front of it.",
        )
