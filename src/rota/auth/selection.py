"""Which account a request uses: X-Service-Account selects one of those that its user has."""

from dataclasses import dataclass
from uuid import UUID

from rota.auth.caller import Caller
from rota.auth.errors import AccountNotSelectable, CompanyAmbiguous
from rota.platform import ids


def selects(selection: str, account_id: UUID, kind: str) -> bool:
    return selection == kind or selection == ids.to_wire("acct", account_id)


def selects_company(selection: str | None, user_id: UUID) -> bool:
    """Whether the companies of the user are needed to know the account."""
    return selection is not None and not selects(selection, user_id, "personal")


@dataclass(frozen=True, slots=True)
class Callers:
    """The same credential in each account of its user."""

    personal: Caller
    # Empty if they were not needed.
    companies: tuple[Caller, ...] = ()

    def select(self, selection: str | None) -> Caller:
        if not selects_company(selection, self.personal.user_id):
            return self.personal
        assert selection is not None
        found = [each for each in self.companies if selects(selection, each.account_id, "company")]
        if len(found) > 1:
            raise CompanyAmbiguous(self.personal, len(found))
        if not found:
            raise AccountNotSelectable(self.personal)
        return found[0]
