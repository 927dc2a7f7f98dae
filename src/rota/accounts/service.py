"""Creates users on their first sign-in, and manages companies and tiers."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from rota.accounts import members, queries
from rota.accounts.members import Seats
from rota.accounts.model import Role
from rota.platform import clock
from rota.platform.db import (
    AccountTransaction,
    Database,
    ReadConnection,
    UnboundTransaction,
    bind_account,
)
from rota.platform.errors import Conflict, NotFound
from rota.platform.ids import new_uuid, to_wire


class AccountNotFound(NotFound):
    def __init__(self, account_id: UUID) -> None:
        super().__init__(f"Account {to_wire('acct', account_id)} not found.")


class CompanyNotFound(NotFound):
    def __init__(self, account_id: UUID) -> None:
        super().__init__(f"Company {to_wire('acct', account_id)} not found.")


class UserNotFound(NotFound):
    def __init__(self, user_id: UUID) -> None:
        super().__init__(
            f"User {to_wire('user', user_id)} not found. A user is created at the first sign-in."
        )


class AccountJustErased(Conflict):
    def __init__(self) -> None:
        super().__init__("The account was erased a moment ago. Sign in again for a new one.")


class SeatsTaken(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"All {limit} seats of this company are in use. An owner or admin must remove a "
            "member or add seats first."
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """A user's profile at an identity provider."""

    issuer: str
    subject: str
    email: str | None
    name: str | None


async def sign_in(
    connection: UnboundTransaction,
    profile: Profile,
    verified_email: str | None,
    signup_trial: timedelta | None,
) -> AccountTransaction:
    """Finds the user with this identity, or creates the user on the first sign-in.

    Returns the transaction, limited to the user's personal account.
    """
    user_id = await queries.user_of_identity(connection, profile.issuer, profile.subject)
    if user_id is None:
        candidate = new_uuid()
        if await queries.claim_identity(connection, profile.issuer, profile.subject, candidate):
            tx = await bind_account(connection, candidate, candidate)
            returns = await queries.was_erased(tx, profile.issuer, profile.subject)
            ends = clock.now() + signup_trial if signup_trial and not returns else None
            await queries.create_user(
                tx, candidate, profile.email, profile.name, ends, returns=returns
            )
            await queries.set_verified_email(tx, verified_email)
            tx.record("account.created", {})
            return tx
        # A concurrent first sign-in created the user, and its commit has made the row visible.
        user_id = await queries.user_of_identity(connection, profile.issuer, profile.subject)
        assert user_id is not None
    tx = await bind_account(connection, user_id, user_id)
    if not await queries.stays_open(tx):
        raise AccountJustErased
    await queries.update_profile(tx, user_id, profile.email, profile.name)
    await queries.set_verified_email(tx, verified_email)
    return tx


async def is_known(connection: ReadConnection, profile: Profile) -> bool:
    """Whether this identity has an account here, or had one: whoever returns must be found."""
    identity = profile.issuer, profile.subject
    if await queries.user_of_identity(connection, *identity) is not None:
        return True
    return await queries.was_erased(connection, *identity)


async def create_company(
    db: Database, name: str, owner_id: UUID, *, tier: str, seats: int | None = None
) -> UUID:
    account_id = new_uuid()
    async with db.write(account_id, owner_id, check_member=False) as tx:
        await check_user(tx, owner_id)
        await create_owned_company(tx, name, tier, seats)
        owner = to_wire("user", owner_id)
        tx.record("company.created", {"owner": owner, "tier": tier, "seats": seats})
    return account_id


async def create_owned_company(
    tx: AccountTransaction,
    name: str,
    tier: str,
    seats: int | None = None,
    *,
    created_by: UUID | None = None,
) -> None:
    """Creates the transaction's account as a company that its user owns."""
    await queries.create_company(tx, name, tier, seats, created_by)
    await members.put(tx, tx.user_id, "owner", approver=None)


async def put_member(
    db: Database, account_id: UUID, user_id: UUID, role: Role, *, approver: bool | None = None
) -> None:
    """Adds a member, or changes a member's role."""
    async with db.write(account_id, user_id, check_member=False) as tx:
        if not await queries.lock_company(tx):
            raise CompanyNotFound(account_id)
        await check_user(tx, user_id)
        is_new = await add_member(tx, user_id, role, approver)
        details = {"role": role, "approver": approver}
        tx.record("member.added" if is_new else "member.updated", details, to_wire("user", user_id))


async def add_member(
    tx: AccountTransaction, user_id: UUID, role: Role, approver: bool | None
) -> bool:
    """Adds a member if there is a seat, or changes one. Returns whether the member is new. The
    company must be locked."""
    if not await members.is_member(tx, user_id):
        check_free_seat(await members.seats(tx))
    return await members.put(tx, user_id, role, approver)


def check_free_seat(seats: Seats) -> None:
    if seats.limit is not None and seats.taken >= seats.limit:
        raise SeatsTaken(seats.limit)


async def set_tier(db: Database, account_id: UUID, tier: str) -> None:
    async with db.write(account_id) as tx:
        if not await queries.set_tier(tx, tier):
            raise AccountNotFound(account_id)
        tx.record("account.tier_set", {"tier": tier})


async def check_user(connection: ReadConnection, user_id: UUID) -> None:
    if not await queries.user_exists(connection, user_id):
        raise UserNotFound(user_id)
