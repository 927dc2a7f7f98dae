# Generated from rota_sdk/_async: do not edit.
"""The client."""

from types import TracebackType
from typing import Self

import httpx

from rota_sdk import models
from rota_sdk._generated import operations
from rota_sdk._requests import UNSET, Options, Unset
from rota_sdk._sync.resource import Resource
from rota_sdk._sync.resources.access import Auth, Keys, Sessions
from rota_sdk._sync.resources.account import Events, Health
from rota_sdk._sync.resources.agents import Agents
from rota_sdk._sync.resources.audit import Audit
from rota_sdk._sync.resources.companies import Companies
from rota_sdk._sync.resources.data import Data
from rota_sdk._sync.resources.money import ConnectPass, Credits, Subscriptions
from rota_sdk._sync.resources.notifications import Notifications
from rota_sdk._sync.resources.policies import Policies, Rules
from rota_sdk._sync.resources.schedules import Schedules
from rota_sdk._sync.resources.tasks import Approvals, Tasks
from rota_sdk._sync.resources.tool_servers import ToolServers
from rota_sdk._sync.resources.webhooks import Webhooks
from rota_sdk._sync.transport import Transport


class Rota(Resource):
    """A client of a Rota service.

    `api_key` is an API key or a session token. Without it, the environment variables ROTA_API_KEY
    and ROTA_ACCOUNT are used; without `base_url`, ROTA_BASE_URL or ROTA_URL. Close the client when
    you no longer need it, or use it in `with`. An `http_client` that you pass stays open:
    close it yourself.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        account: str | None = None,
        timeout: float | httpx.Timeout = 60.0,
        max_retries: int = 2,
        api_version: str | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        options = Options.of(api_key, base_url, account, timeout, max_retries, api_version)
        self._use(options, http_client or httpx.Client(), owns_http=http_client is None)

    def _use(self, options: Options, http: httpx.Client, *, owns_http: bool) -> None:
        self._owns_http = owns_http
        self._transport = Transport(options, http)
        self.tasks = Tasks(self._transport)
        self.approvals = Approvals(self._transport)
        self.agents = Agents(self._transport)
        self.schedules = Schedules(self._transport)
        self.tool_servers = ToolServers(self._transport)
        self.credits = Credits(self._transport)
        self.subscriptions = Subscriptions(self._transport)
        self.connect_pass = ConnectPass(self._transport)
        self.events = Events(self._transport)
        self.audit = Audit(self._transport)
        self.companies = Companies(self._transport)
        self.notifications = Notifications(self._transport)
        self.policies = Policies(self._transport)
        self.data = Data(self._transport)
        self.rules = Rules(self._transport)
        self.webhooks = Webhooks(self._transport)
        self.keys = Keys(self._transport)
        self.sessions = Sessions(self._transport)
        self.auth = Auth(self._transport)
        self.health = Health(self._transport)

    def with_options(
        self,
        *,
        api_key: str | Unset | None = UNSET,
        account: str | Unset | None = UNSET,
        timeout: float | httpx.Timeout | Unset = UNSET,
        max_retries: int | Unset = UNSET,
    ) -> "Rota":
        """A client with other options that shares this one's connections.

        The connections belong to this client: close it, and not the copy.
        """
        now = self._transport.options
        copy = Rota.__new__(Rota)
        copy._use(
            Options(
                now.base_url,
                now.api_key if api_key is UNSET else api_key,
                now.account if account is UNSET else account,
                now.timeout if timeout is UNSET else timeout,
                now.max_retries if max_retries is UNSET else max_retries,
                now.api_version,
            ),
            self._transport.http,
            owns_http=False,
        )
        return copy

    def me(self) -> models.MeResponse:
        """The user, the account and the tier of this client."""
        return self._call(operations.me)

    def close(self) -> None:
        """Closes the connections, if this client has opened them."""
        if self._owns_http:
            self._transport.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Rota(base_url={self._transport.options.base_url!r})"
