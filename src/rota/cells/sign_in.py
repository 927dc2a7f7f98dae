"""Signs people in to the cell that has their account, and gives new accounts to a cell.

No table says which cell has an identity: the cells know. The router asks all of them, and a cell
answers without using the token up. Only when every cell has said that it does not know the
identity, the sign-in creates an account. So a person never gets a second account because a cell was
added, was down for a moment, or was named by the client.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping

from starlette.types import Send

from rota.cells import metrics
from rota.cells.cell import Cell, healthy_first
from rota.cells.connection import CellFailed, Headers
from rota.cells.destinations import cookies, identity_of
from rota.cells.exchange import Exchange, Request, exchange
from rota.cells.fetching import Answer, ask
from rota.cells.finding import MISDIRECTED, find, routing
from rota.cells.placement import Identity, in_order
from rota.platform import json
from rota.platform.cell import CREATE, KNOWN_ONLY, RESERVE
from rota.platform.errors import Conflict, FieldError, Unavailable, ValidationFailed

MAX_BODY_BYTES = 64 * 1024
# With which a program chooses the cell. Pages use a cookie for the cell of an invitation.
CHOICE = b"rota-cell"
CHOICE_COOKIE = "__Host-rota-cell"
LOCAL_CHOICE_COOKIE = "rota-cell"
SESSION_PATH = "/api/auth/session"
# The exchange of a code waits for the identity provider, at most 10 s twice.
CODE_S = 25.0
# Shorter than a cell remembers that another one creates an account.
CREATE_S = 30.0

Relay = Callable[[Exchange, Send], Awaitable[None]]


class SignInIncomplete(Unavailable):
    def __init__(self, cells: Collection[str]) -> None:
        names = ", ".join(sorted(cells))
        super().__init__(
            f"None of the available cells has your account, and not all cells are available: "
            f"{names} cannot be reached. Sign in again in a moment.",
            headers={"Retry-After": "10"},
        )


class AccountInAnotherCell(Conflict):
    def __init__(self, home: str, chosen: str) -> None:
        super().__init__(
            f"Your account is in cell {home}, so you cannot get another one in cell {chosen}. "
            "Sign in without the header Rota-Cell. To join a company of that cell, ask for "
            "an invitation to an address that you have not signed in with here."
        )


class CellFull(Conflict):
    def __init__(self, chosen: str) -> None:
        super().__init__(
            f"Cell {chosen} accepts no new accounts, and you have no account there. Sign in "
            "without the header Rota-Cell, or ask the operator of the service. If you opened an "
            "invitation in this browser, wait 10 minutes, then sign in again."
        )


class SignIns:
    """`local` accepts the cookie that pages without https can set."""

    def __init__(
        self, cells: Mapping[str, Cell], full: Collection[str], *, local: bool = True
    ) -> None:
        self._cells = cells
        self._open = [name for name in cells if name not in full]
        self._choice_cookies = (CHOICE_COOKIE, LOCAL_CHOICE_COOKIE)[: 1 + local]

    async def __call__(self, request: Request, relay: Relay, send: Send) -> None:
        body = await request.read(MAX_BODY_BYTES)
        chosen, insists = self._choice(request.headers)
        if request.scope["path"] != SESSION_PATH:
            answer = await self._exchanged(request)
            if answer.status != MISDIRECTED:
                await answer.relay(send)
                return
            body = _sign_in_of(answer, asked=body)
            request = request.replaced(SESSION_PATH, body)
        identity = identity_of(_fields(body).get("idToken"))
        if identity is None:
            # A cell says what is wrong.
            await (await self._any_answer(request)).relay(send)
            return
        order = in_order(identity, self._cells)
        found = await find(self._cells, order, request, chosen)
        missing = [answer.cell for answer in found.missing]
        if insists and chosen in missing:
            raise SignInIncomplete((chosen,))
        if found.home is not None:
            if insists and found.home != chosen:
                raise AccountInAnotherCell(found.home, chosen or "")
            kind = "chosen" if found.home == chosen else "known"
            await self._sign_in(found.home, kind, request, relay, send)
        elif found.refusal is not None:
            await found.refusal.relay(send)
        elif len(missing) == len(order) and found.missing[0].status:
            # No cell can do it, such as without the identity provider. One of them says why.
            await found.missing[0].relay(send)
        elif missing:
            raise SignInIncomplete(missing)
        else:
            await self._create(identity, chosen, request, relay, send)

    async def _create(
        self, identity: Identity, chosen: str | None, request: Request, relay: Relay, send: Send
    ) -> None:
        usual = in_order(identity, self._open)[0]
        if chosen is None or chosen == usual:
            await self._sign_in(usual, "new", request, relay, send)
            return
        if chosen not in self._open:
            raise CellFull(chosen)
        # Another sign-in at this moment may choose another cell, or none.
        reserved = await ask(self._cells[usual], request, routing(RESERVE, self._cells))
        if not reserved.status:
            raise SignInIncomplete((usual,))
        if reserved.status >= 300:
            await reserved.relay(send)
            return
        await self._sign_in(chosen, "new", request, relay, send)

    async def _sign_in(
        self, name: str, kind: str, request: Request, relay: Relay, send: Send
    ) -> None:
        question = routing(CREATE if kind == "new" else KNOWN_ONLY, self._cells)
        try:
            async with exchange(self._cells[name], request, question, within_s=CREATE_S) as answer:
                metrics.SIGN_INS.labels(name, kind).inc(answer.status == 200)
                await relay(answer, send)
        except CellFailed:
            raise SignInIncomplete((name,)) from None

    async def _exchanged(self, request: Request) -> Answer:
        """Only a cell can exchange a code. With the ID token that it gets, the person signs in."""
        answers = []
        for cell in healthy_first(self._cells.values()):
            answer = await ask(cell, request, routing(KNOWN_ONLY, self._cells), within_s=CODE_S)
            if not answer.is_missing:
                return answer
            # If it has used the code up, the next one says that the person must sign in again.
            answers.append(answer)
        return self._first_response(answers)

    async def _any_answer(self, request: Request) -> Answer:
        answers = []
        for cell in healthy_first(self._cells.values()):
            answers.append(await ask(cell, request, routing(KNOWN_ONLY, self._cells)))
            if not answers[-1].is_missing:
                return answers[-1]
        return self._first_response(answers)

    def _first_response(self, answers: list[Answer]) -> Answer:
        for answer in answers:
            if answer.status:
                return answer
        raise SignInIncomplete(list(self._cells))

    def _choice(self, headers: Headers) -> tuple[str | None, bool]:
        """The cell that the client names, and whether it must be this one. The header of a program
        does. The cookie of a page comes from a link that anybody can send, so it only says where
        the account of a new person goes."""
        by_name = dict(headers)
        if (named := by_name.get(CHOICE)) is not None:
            name = named.decode("latin-1")
            if name not in self._cells:
                raise ValidationFailed.of(FieldError("Rota-Cell", "is not a cell of this service"))
            return name, True
        sent = cookies(by_name.get(b"cookie", b""))
        named_by_page = (sent.get(each) for each in self._choice_cookies)
        return next((name for name in named_by_page if name in self._cells), None), False


def _sign_in_of(answer: Answer, asked: bytes) -> bytes:
    details = _fields_of(_fields_of(_fields(answer.body).get("error")).get("details"))
    return json.dumps(
        {"idToken": details.get("idToken"), "cookie": _fields(asked).get("cookie", False)}
    )


def _fields(body: bytes) -> dict[str, object]:
    try:
        return _fields_of(json.loads(body))
    except json.InvalidJson:
        return {}


def _fields_of(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
