"""Creates, reads and renames companies."""

from dataclasses import dataclass

from rota.accounts import members, queries
from rota.accounts import service as accounts
from rota.accounts.model import Account
from rota.auth.caller import Caller
from rota.companies import schemas
from rota.companies.errors import CompanyNotFound, TooManyCompanies
from rota.companies.schemas import CompanyResponse, CreateCompany, PatchCompany
from rota.events import journal
from rota.platform.db import AccountReader, AccountTransaction, Database, bind_account
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.ids import new_uuid, to_wire

# By one user, also if the user has left them. Each company has rate limits and places of its own.
MAX_CREATED = 20


@dataclass(frozen=True, slots=True)
class Company:
    account: Account
    seats: members.Seats


class Companies:
    def __init__(self, db: Database, idempotency: Idempotency, *, tier: str) -> None:
        self._db = db
        self._idempotency = idempotency
        # The tier of a company without a plan.
        self._tier = tier

    async def create(self, caller: Caller, body: CreateCompany, key: str | None) -> Outcome:
        """Creates a company that the caller's user owns."""
        user_id = caller.user_id
        # The idempotency key belongs to the personal account: a repeated request does not know
        # the company.
        async with self._db.write(user_id, user_id) as tx:
            return await self._idempotency.once(
                tx, key, ("POST /api/companies", body), 201, lambda: self._create(tx, body)
            )

    async def _create(self, tx: AccountTransaction, body: CreateCompany) -> CompanyResponse:
        if not await queries.count_company(tx, MAX_CREATED):
            raise TooManyCompanies(MAX_CREATED)
        company = await bind_account(tx, new_uuid(), tx.user_id)
        await accounts.create_owned_company(company, body.name, self._tier, created_by=tx.user_id)
        await journal.append(company, "company.created", {"by": to_wire("user", tx.user_id)})
        created = await read(company)
        await bind_account(tx, tx.account_id, tx.user_id)
        return CompanyResponse(account=schemas.Company.of(created.account, created.seats))

    async def get(self, caller: Caller) -> Company:
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            return await read(tx)

    async def rename(self, caller: Caller, body: PatchCompany) -> Company:
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            before = await read(tx)
            if body.name is not None and body.name != before.account.name:
                await queries.set_name(tx, body.name)
                await journal.append(tx, "company.updated", {"by": to_wire("user", caller.user_id)})
            return await read(tx)


async def read(tx: AccountReader) -> Company:
    found = await queries.user_with_accounts(tx, tx.user_id)
    joined = found[1] if found else []
    account = next((each for each in joined if each.id == tx.account_id), None)
    if account is None:
        # The membership has just ended.
        raise CompanyNotFound
    return Company(account, await members.seats(tx))
