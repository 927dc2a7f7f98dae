"""Signing in for the first time, and companies with their members."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from rota.accounts import queries
from rota.accounts.model import Role
from rota.platform import clock
from rota.platform.db import (
    AccountTransaction,
    Database,
    ReadConnection,
    WriteConnection,
    bind_account,
)
from rota.platform.errors import Conflict, NotFound
from rota.platform.ids import new_uuid


@dataclass(frozen=True, slots=True)
class Profile:
    """What an identity provider says of somebody."""

    issuer: str
    subject: str
    email: str | None
    name: str | None


async def sign_in(
    connection: WriteConnection, profile: Profile, signup_trial: timedelta | None
) -> AccountTransaction:
    """Finds the user with this identity, or creates the user on the first sign-in.

    Returns the transaction, limited to the user's personal account.
    """
    user_id = await queries.user_of_identity(connection, profile.issuer, profile.subject)
    if user_id is None:
        candidate = new_uuid()
        if await queries.claim_identity(connection, profile.issuer, profile.subject, candidate):
            tx = await bind_account(connection, candidate, candidate)
            ends = clock.now() + signup_trial if signup_trial else None
            await queries.create_user(tx, candidate, profile.email, profile.name, ends)
            return tx
        # A concurrent first sign-in has just created the user; its commit made the row visible.
        user_id = await queries.user_of_identity(connection, profile.issuer, profile.subject)
        assert user_id is not None
    tx = await bind_account(connection, user_id, user_id)
    await queries.update_profile(tx, user_id, profile.email, profile.name)
    return tx


async def create_company(
    db: Database, name: str, owner_id: UUID, *, tier: str, seats: int | None = None
) -> UUID:
    account_id = new_uuid()
    async with db.write(account_id, owner_id) as tx:
        await _check_user(tx, owner_id)
        await queries.create_company(tx, name, tier, seats)
        await queries.put_member(tx, owner_id, "owner")
    return account_id


async def put_member(db: Database, account_id: UUID, user_id: UUID, role: Role) -> None:
    """Adds a member, or gives a member another role."""
    async with db.write(account_id, user_id) as tx:
        if not await queries.lock_company(tx):
            raise NotFound("There is no such company.")
        await _check_user(tx, user_id)
        new = await queries.put_member(tx, user_id, role)
        limit, taken = await queries.seats(tx)
        if new and limit is not None and taken > limit:
            raise Conflict(
                f"All {limit} seats of this company are taken. Free one or add seats first."
            )


async def set_tier(db: Database, account_id: UUID, tier: str) -> None:
    async with db.write(account_id) as tx:
        if not await queries.set_tier(tx, tier):
            raise NotFound("There is no such account.")


async def _check_user(connection: ReadConnection, user_id: UUID) -> None:
    if not await queries.user_exists(connection, user_id):
        raise NotFound("There is no such user. Users are made when they first sign in.")
