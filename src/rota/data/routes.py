"""Endpoints: the export and the erasure of an account."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import StreamingResponse
from starlette.requests import Request
from starlette.responses import Response

from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.cookies import Cookies
from rota.auth.routing import AUTHORIZATION, allowed, secured_router
from rota.data.erasure import Erasures
from rota.data.export import Exports
from rota.data.schemas import EraseAccount, Erasure, ErasureResponse
from rota.platform.http.description import documented

NDJSON = "application/x-ndjson"
OWNER = allowed(right="data", session=True)

Owner = Annotated[Caller, Depends(OWNER)]


def data_routes(
    exports: Exports, erasures: Erasures, authenticator: Authenticator, cookies: Cookies
) -> APIRouter:
    router = secured_router("Data")

    @router.get(
        "/api/export",
        summary="Export the account",
        response_class=StreamingResponse,
        responses={200: {"content": {NDJSON: {"schema": {"type": "string"}, "example": EXAMPLE}}}},
    )
    async def export_account(request: Request, caller: Owner) -> Response:
        """Returns everything that the account owns, as it is at one moment: a line of JSON for
        each object. The first line is a manifest. The last one has the number of lines of each type
        and the SHA-256 of all lines before it. Without that line, the export is not complete.
        Secrets are not exported. One export of an account runs at a time."""

        async def check() -> Caller:
            found = await authenticator.authenticate_again(
                caller, request.scope.get(AUTHORIZATION), request.headers.get("x-service-account")
            )
            return OWNER.check(found)

        lines = exports.stream(caller, check)
        # An export that is refused has an error instead of a stream.
        first = await anext(lines)
        name = f"rota-export-{caller.account_id.hex}.ndjson"
        return StreamingResponse(
            _resumed(first, lines),
            media_type=NDJSON,
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    @router.delete("/api/account", summary="Erase the account", responses=documented(404, 409))
    async def erase_account(
        request: Request, response: Response, caller: Owner, body: EraseAccount
    ) -> ErasureResponse:
        """Erases the account for good. Sessions, API keys, runs, schedules and subscriptions end
        at once. Then all texts are erased. Money records stay without texts, and the audit trail
        stays verifiable without details.

        The session must be younger than 10 minutes (403 `RECENT_SIGN_IN_REQUIRED`). The only owner
        of a company cannot erase the personal account before the company has another owner or is
        erased (409)."""
        erasure = await erasures.request(caller, body.name)
        by_cookie = cookies.credential(request.scope, dict(request.scope["headers"])).by_cookie
        if by_cookie and caller.account_kind == "personal":
            cookies.clear(response)
        return ErasureResponse(erasure=Erasure.of(erasure))

    return router


EXAMPLE = """\
{"manifest":{"format":"rota-export","version":1,"kind":"personal","name":"Ada Lovelace"}}
{"type":"task","data":{"name":"Write the report","status":"COMPLETED"}}
{"end":{"lines":2,"counts":{"task":1},"sha256":"9f86d081…"}}
"""


async def _resumed(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for page in rest:
        yield page
