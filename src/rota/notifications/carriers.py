"""What messages are made and sent with."""

from dataclasses import dataclass

from rota.notifications.chat import ChatSender
from rota.notifications.smtp import Mailer
from rota.notifications.unsubscribing import UnsubscribeTokens
from rota.platform.crypto import Vault


@dataclass(frozen=True, slots=True)
class Carriers:
    mailer: Mailer
    chat: ChatSender
    # Opens the URLs of chats.
    vault: Vault
    tokens: UnsubscribeTokens
    public_url: str
