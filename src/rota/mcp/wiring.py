"""Puts the parts together that the service and the worker both have."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from rota.mcp.client import ToolClient
from rota.mcp.health import Health
from rota.mcp.sessions import Sessions, Timeouts
from rota.platform.crypto import Vault
from rota.platform.db import Database
from rota.platform.egress import Bounds, Egress
from rota.platform.settings import Settings


@dataclass(frozen=True, slots=True)
class McpParts:
    egress: Egress
    sessions: Sessions
    watch: Health
    calling: ToolClient


def mcp_wiring(
    settings: Settings, db: Database, vault: Vault, announce: Callable[[UUID], None]
) -> McpParts:
    timeouts = Timeouts(settings.mcp_connect_s, settings.mcp_call_s)
    egress = Egress(
        allow=settings.egress_allow,
        https_only=settings.env == "production",
        bounds=Bounds(
            connect_s=min(5, timeouts.connect_s), read_s=timeouts.call_s, total_s=timeouts.call_s
        ),
    )
    sessions = Sessions(egress, timeouts, limit=settings.mcp_sessions, idle_s=settings.mcp_idle_s)
    watch = Health(db, announce, check_every_s=settings.mcp_check_minutes * 60)
    return McpParts(egress, sessions, watch, ToolClient(sessions, vault, watch))
