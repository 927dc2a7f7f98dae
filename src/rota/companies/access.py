"""Who can use the routes of companies and invitations: the path selects the company, or the route
is about the user alone."""

from starlette.requests import Request
from starlette.types import Scope

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.errors import AccountNotSelectable, SessionRequired
from rota.auth.rights import Right
from rota.auth.routing import AUTHORIZATION, allowed, caller_of
from rota.companies.errors import CompanyNotFound
from rota.platform import ids


class as_user(allowed):  # noqa: N801
    """A dependency: the Caller in the personal account, whichever account is selected."""

    def __init__(
        self,
        authenticator: Authenticator,
        *,
        right: Right | None = None,
        account: bool = False,
        own: bool = False,
    ) -> None:
        super().__init__(right=right, session=True, account=account, own=own)
        self._authenticator = authenticator

    async def __call__(self, request: Request) -> Caller:
        return self.check(await self._select(request.scope, "personal"))

    async def _select(self, scope: Scope, selection: str) -> Caller:
        """The Caller in this account, as it is after the body was read."""
        if caller_of(scope).session_id is None:
            raise SessionRequired
        return await self._authenticator.authenticate(scope.get(AUTHORIZATION), selection)


class in_company(as_user):  # noqa: N801
    """A dependency: the Caller in the company that the path names, whichever account is selected.

    The path only selects, as X-Service-Account does: the session must belong to a member. Others
    get 404, as for a company that does not exist. With `own`, a member whom the path names needs
    no right.
    """

    def __init__(
        self, authenticator: Authenticator, *, right: Right | None = None, own: bool = False
    ) -> None:
        super().__init__(authenticator, right=right, account=True, own=own)

    async def __call__(self, request: Request) -> Caller:
        # Only an ID: `company` would select any company.
        company_id = ids.from_wire("acct", request.path_params["id"])
        selection = ids.to_wire("acct", company_id) if company_id else "personal"
        try:
            caller = await self._select(request.scope, selection)
        except AccountNotSelectable:
            raise CompanyNotFound from None
        if caller.account_kind != "company":
            raise CompanyNotFound
        if self.own and ids.from_wire("user", request.path_params["userId"]) == caller.user_id:
            return caller
        return self.check(caller)
