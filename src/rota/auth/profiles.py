"""The caller's own view: the user, the selected account, and the accounts the caller can select."""

from dataclasses import dataclass

from rota.accounts import queries
from rota.accounts.model import Account, User
from rota.auth.caller import Caller
from rota.auth.errors import AccountNotSelectable, UserDeleted
from rota.platform.db import Database


@dataclass(frozen=True, slots=True)
class CallerProfile:
    user: User
    account: Account
    accounts: list[Account]


class Profiles:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def me(self, caller: Caller) -> CallerProfile:
        async with self._db.read(caller.account_id, caller.user_id) as tx:
            found = await queries.user_with_accounts(tx, caller.user_id)
        if found is None:
            raise UserDeleted
        user, accounts = found
        account = next((a for a in accounts if a.id == caller.account_id), None)
        if account is None:
            # The membership ended while the authenticator still had the caller cached.
            raise AccountNotSelectable(caller)
        # An API key shows only its own account, not the other accounts of its creator.
        visible = [account] if caller.session_id is None else accounts
        return CallerProfile(user, account, visible)
