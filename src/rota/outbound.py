"""The parts that connect to addresses of customers: the guarded egress, and webhooks."""

import base64
from functools import cached_property

from rota.foundation import Foundation
from rota.platform.egress import Egress, ServerBounds
from rota.platform.idempotency import Idempotency
from rota.platform.resolver import Resolver
from rota.webhooks.dispatcher import Dispatcher
from rota.webhooks.sender import RESPONSE_BYTES, Sender
from rota.webhooks.service import Webhooks
from rota.webhooks.signing import Signer, derived_key
from rota.webhooks.turns import DeliveryTurns


class Outbound(Foundation):
    @cached_property
    def idempotency(self) -> Idempotency:
        return Idempotency(self.vault)

    @cached_property
    def resolver(self) -> Resolver:
        resolver = Resolver()
        self._closes(resolver.close)
        return resolver

    @cached_property
    def egress(self) -> Egress:
        """For tool servers."""
        settings = self.settings
        return self._egress(
            ServerBounds(
                connect_s=min(5, settings.mcp_connect_s),
                read_s=settings.mcp_call_s,
                total_s=settings.mcp_call_s,
            )
        )

    def _egress(self, bounds: ServerBounds) -> Egress:
        settings = self.settings
        return Egress(
            resolve=self.resolver,
            allow=settings.egress_allow,
            https_only=settings.env == "production",
            bounds=bounds,
        )

    @cached_property
    def webhook_egress(self) -> Egress:
        timeout_s = self.settings.webhook_timeout_s
        return self._egress(
            ServerBounds(
                connect_s=min(5, timeout_s),
                read_s=timeout_s,
                total_s=timeout_s,
                response_bytes=16 * RESPONSE_BYTES,
                connections=1,
            )
        )

    @cached_property
    def webhook_signer(self) -> Signer:
        configured = [
            base64.b64decode(key.get_secret_value()) for key in self.settings.webhook_keys
        ]
        return Signer(configured or [derived_key(key) for key in self.settings.secret_keys])

    @cached_property
    def webhook_sender(self) -> Sender:
        return Sender(
            self.webhook_egress,
            self.vault,
            self.webhook_signer,
            timeout_s=self.settings.webhook_timeout_s,
        )

    @cached_property
    def webhooks(self) -> Webhooks:
        return Webhooks(
            self.db,
            self.vault,
            self.idempotency,
            self.webhook_egress,
            self.webhook_sender,
            self.fanout.announce_webhook,
        )

    @cached_property
    def webhook_dispatcher(self) -> Dispatcher:
        return Dispatcher(
            self.db, self.fanout, DeliveryTurns(self.db, self.fanout, self.webhook_sender)
        )
