"""Puts the parts together that the service and the worker both have."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from rota.mcp.calling import Calling
from rota.mcp.sessions import Patience, Sessions
from rota.mcp.watch import Watch
from rota.platform.crypto import Vault
from rota.platform.db import Database
from rota.platform.egress import Bounds, Egress
from rota.platform.settings import Settings


@dataclass(frozen=True, slots=True)
class McpParts:
    egress: Egress
    sessions: Sessions
    watch: Watch
    calling: Calling


def mcp_parts(
    settings: Settings, db: Database, vault: Vault, announce: Callable[[UUID], None]
) -> McpParts:
    patience = Patience(settings.mcp_connect_s, settings.mcp_call_s)
    egress = Egress(
        allow=settings.egress_allow,
        https_only=settings.env == "production",
        bounds=Bounds(
            connect_s=min(5, patience.connect_s), read_s=patience.call_s, total_s=patience.call_s
        ),
    )
    sessions = Sessions(egress, patience, limit=settings.mcp_sessions, idle_s=settings.mcp_idle_s)
    watch = Watch(db, announce, check_every_s=settings.mcp_check_minutes * 60)
    return McpParts(egress, sessions, watch, Calling(sessions, vault, watch))
