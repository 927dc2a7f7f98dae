"""What can go wrong with a call to Stripe."""

from collections.abc import Iterator
from contextlib import contextmanager

import stripe
import structlog

from rota.payments.port import PaymentFailed, ProcessorUnavailable

_FAILED = "The payment processor did not respond or refused the request. Try again later."
# Stripe is down or limits requests, or the key is wrong or lacks a right.
_OUTAGES = (
    stripe.APIConnectionError,
    stripe.APIError,
    stripe.RateLimitError,
    stripe.AuthenticationError,
    stripe.PermissionError,
)

log = structlog.get_logger()


class CheckoutClosed(PaymentFailed):
    """The key belongs to an earlier checkout that is paid or has expired."""

    def __init__(self) -> None:
        super().__init__("This checkout is closed. Start a new one.")


class ProductNotOnSale(PaymentFailed):
    def __init__(self, product: str) -> None:
        super().__init__(f"The product {product} is not on sale yet. Try again later.")
        self.product = product


class StripeFailed(PaymentFailed):
    """Stripe refused the request. The log has the details."""

    def __init__(self) -> None:
        super().__init__(_FAILED)


class StripeUnavailable(ProcessorUnavailable):
    """Stripe did not respond, or would refuse any request. The log has the details."""

    def __init__(self) -> None:
        super().__init__(_FAILED)


class SubscriptionForeign(PaymentFailed):
    """The subscription belongs to another service that uses the same Stripe account."""

    def __init__(self, subscription_id: str) -> None:
        super().__init__("The payment processor returned an unknown subscription.")
        self.subscription_id = subscription_id


@contextmanager
def stripe_call(operation: str) -> Iterator[None]:
    """Logs every failure of Stripe and raises a PaymentFailed without its details."""
    try:
        yield
    except stripe.StripeError as error:
        log.warning(
            "stripe_failed",
            operation=operation,
            kind=type(error).__name__,
            status=error.http_status,
            code=error.code,
            request_id=error.request_id,
            reason=error.user_message,
        )
        if isinstance(error, _OUTAGES):
            raise StripeUnavailable from error
        raise StripeFailed from error
