"""The table of docs/access.md: who can use each operation, read from what the routes declare.

`make openapi` writes it: python -m rota.access_table >docs/access.md
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fastapi import FastAPI
from fastapi.routing import APIRoute

from rota.accounts.model import Role
from rota.app import create_app
from rota.auth.rights import has_right
from rota.auth.routing import SecuredRoute, allowed
from rota.platform.settings import Settings
from rota.variants import VARIANTS

Credential = Literal["session", "key"]
CREDENTIALS: tuple[Credential, ...] = ("session", "key")


@dataclass(frozen=True, slots=True)
class Standing:
    """What a user is in a company."""

    name: str
    # None: not a member.
    role: Role | None
    approver: bool = False


STANDINGS = (
    Standing("owner", "owner"),
    Standing("admin", "admin"),
    Standing("approver", "member", approver=True),
    Standing("member", "member"),
    Standing("stranger", None),
)

HEADER = """\
# Who can do what

This table lists each operation, and who can use it in a company: with a session or an API key
(both), with a session only (session), with a session and only for their own membership (self), or
not at all (–). An API key acts for the user who created it, with the user's role, and also needs
the scopes in the second column. An *approver* is a member with that right. A *stranger* is not a
member: all operations of the company are refused, with 403, or 404 if the path names the company.
Operations that are about the user alone, such as creating a company, are open to all users. In a
personal account, the user is the owner, and the operations of the connect pass work there only.

The tools of the [MCP server](mcp-server.md#tools) and the operations of [A2A](a2a.md#operations)
need the scopes that their pages name. Sessions cannot use them.

`make openapi` generates this page from what the routes declare.
[Companies](companies.md) explains roles and rights.

| operation | scopes | {standings} | variant |
|---|---|{lines}|---|
"""


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    # None: no authentication.
    needs: allowed | None

    def admits(self, standing: Standing, credential: Credential, *, own: bool = False) -> bool:
        """Whether a user can use it in a company, with a key that has its scopes. `own`: for the
        own membership."""
        needs = self.needs
        if needs is None:
            return True
        if needs.personal or (needs.session and credential == "key"):
            return False
        if not needs.account:
            return True
        if standing.role is None:
            return False
        return (own and needs.own) or has_right(standing.role, standing.approver, needs.right)


class Undecided(Exception):
    """A route that does not say who can use it."""


def operations(app: FastAPI) -> Iterator[Operation]:
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in sorted(route.methods or ()):
                yield Operation(method, route.path_format, _needs(route))


def _needs(route: APIRoute) -> allowed | None:
    found = [each.call for each in route.dependant.dependencies if isinstance(each.call, allowed)]
    if len(found) != isinstance(route, SecuredRoute):
        raise Undecided(f"{route.methods} {route.path_format}")
    return found[0] if found else None


def page() -> str:
    """The text of docs/access.md."""
    rows: dict[str, list[str]] = {}
    for name in VARIANTS:
        app = create_app(Settings(env="test", variant=name))
        for operation in operations(app):
            rows.setdefault(_row(operation), []).append(name.upper())
    names = [standing.name for standing in STANDINGS]
    head = HEADER.format(standings=" | ".join(names), lines="|".join("---" for _ in names))
    # By path: the order of the routes is that of a busy service.
    body = sorted(rows, key=lambda row: row.split("`")[1].split()[::-1])
    return head + "".join(f"{row} {', '.join(rows[row])} |\n" for row in body)


def _row(operation: Operation) -> str:
    cells = []
    for standing in STANDINGS:
        usable = [each for each in CREDENTIALS if operation.admits(standing, each)]
        refused = "self" if operation.admits(standing, "session", own=True) else "–"
        cells.append("both" if len(usable) == 2 else usable[0] if usable else refused)
    label = f"`{operation.method} {operation.path}`"
    return f"| {label} | {_scopes(operation.needs)} | {' | '.join(cells)} |"


def _scopes(needs: allowed | None) -> str:
    if needs is None:
        return "no authentication"
    if needs.session:
        return "session only"
    return " ".join(f"`{scope}`" for scope in needs.scopes) or "any key"


if __name__ == "__main__":
    sys.stdout.write(page())
