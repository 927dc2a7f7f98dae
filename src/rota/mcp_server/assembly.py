"""Builds the MCP server and its routes from parts of the service."""

from fastapi import APIRouter

from rota.agents.access import AgentAccess
from rota.agents.catalog import Catalog
from rota.auth.access_tokens import AccessTokens
from rota.auth.authenticator import Authenticator
from rota.auth.issuers import Issuers
from rota.auth.program_endpoints import ProgramEndpoint
from rota.events.stream import Streams
from rota.mcp_server.calls import Calls
from rota.mcp_server.results import Presenter
from rota.mcp_server.routes import mcp_server_routes
from rota.mcp_server.server import PATH, McpServer
from rota.mcp_server.task_handles import Handles
from rota.mcp_server.waiting import Waiting
from rota.platform.db import Database
from rota.platform.settings import Settings
from rota.tasks.following import Following
from rota.tasks.reviews import Reviews
from rota.tasks.service import Tasks


class McpAssembly:
    """The server, who may use it, and its routes."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        authenticator: Authenticator,
        issuers: Issuers,
        tasks: Tasks,
        reviews: Reviews,
        catalog: Catalog,
        agent_access: AgentAccess,
        streams: Streams,
    ) -> None:
        self._settings = settings
        self._issuers = issuers
        url = settings.public_url
        self.credentials = AccessTokens(
            db, authenticator, issuers, url.rstrip("/") + PATH, settings.cell
        )
        presenter = Presenter(url)
        calls = Calls(tasks, catalog, agent_access, Waiting(Following(tasks, streams)), presenter)
        self.server = McpServer(
            calls,
            Handles(calls, reviews, presenter),
            self.credentials,
            most_agents=settings.mcp_agent_tools,
        )

    def routes(self) -> APIRouter:
        program = ProgramEndpoint(PATH, self._settings)
        return mcp_server_routes(self.server, program, self._issuers)
