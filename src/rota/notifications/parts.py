"""Builds the parts of notifications from the settings."""

from datetime import timedelta

from rota.events.wakes import Wakes
from rota.notifications.carriers import Carriers
from rota.notifications.chat import ChatSender
from rota.notifications.delivery import Delivery, Timing
from rota.notifications.sender import Sender
from rota.notifications.service import Notifications
from rota.notifications.smtp import mailer_of
from rota.notifications.unsubscribing import UnsubscribeTokens
from rota.platform.crypto import Vault
from rota.platform.db import Database
from rota.platform.egress import Egress
from rota.platform.settings import Settings


class NotificationAssembly:
    def __init__(
        self,
        settings: Settings,
        db: Database,
        vault: Vault,
        egress: Egress,
    ) -> None:
        self.mailer = mailer_of(settings)
        self._db = db
        self._digest = timedelta(minutes=settings.digest_minutes)
        tokens = UnsubscribeTokens(settings.secret_keys, settings.cell)
        self._carriers = Carriers(
            self.mailer, ChatSender(egress), vault, tokens, settings.public_url
        )

    def service(self) -> Notifications:
        minutes = int(self._digest.total_seconds() // 60)
        return Notifications(self._db, self._carriers, digest_minutes=minutes)

    def delivery(self, timing: Timing | None = None) -> Delivery:
        return Delivery(self._db, self._carriers, timing or Timing(self._digest))

    def sender(self, wakes: Wakes | None, timing: Timing | None = None) -> Sender:
        has_mail = self.mailer.transport != "off"
        digest = timing.digest if timing else self._digest
        return Sender(self._db, self.delivery(timing), wakes, digest=digest, has_mail=has_mail)
