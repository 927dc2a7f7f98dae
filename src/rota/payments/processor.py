"""Selects the payment processor from the settings."""

from rota.payments.port import NoProcessor, Processor
from rota.payments.stripe import Stripe
from rota.platform.settings import Settings


def processor_of(settings: Settings) -> Processor:
    if settings.stripe_secret_key is None:
        return NoProcessor()
    return Stripe(
        settings.stripe_secret_key.get_secret_value(),
        return_url=settings.return_url,
        webhook_secrets=tuple(s.get_secret_value() for s in settings.stripe_webhook_secrets),
        api_url=settings.stripe_api_url,
        cell=settings.cell,
        owns_nameless=settings.is_first_cell,
    )
