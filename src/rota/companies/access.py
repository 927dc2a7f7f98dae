"""Who can use the routes of a company."""

from starlette.requests import Request

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.errors import AccountNotSelectable
from rota.auth.rights import Right
from rota.auth.routing import AUTHORIZATION, allowed, caller_of
from rota.companies.errors import CompanyNotFound
from rota.platform import ids


class in_company(allowed):  # noqa: N801
    """A dependency: the Caller in the company that the path names, whichever account is selected.

    The path only selects, as X-Service-Account does: the session must belong to a member. Others
    get 404, as for a company that does not exist.
    """

    def __init__(self, authenticator: Authenticator, *, right: Right | None = None) -> None:
        super().__init__(right=right, session=True)
        self._authenticator = authenticator

    async def __call__(self, request: Request) -> Caller:
        if caller_of(request.scope).session_id is None:
            return await super().__call__(request)
        selection = request.path_params["id"]
        if ids.from_wire("acct", selection) is None:
            raise CompanyNotFound
        try:
            caller = await self._authenticator.authenticate(
                request.scope.get(AUTHORIZATION), selection
            )
        except AccountNotSelectable:
            raise CompanyNotFound from None
        if caller.account_kind != "company":
            raise CompanyNotFound
        return self.check(caller)
