"""Signing in for the first time, and companies with their members."""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from rota.accounts import queries
from rota.accounts.model import Role
from rota.platform import clock
from rota.platform.db import Database, ReadConnection, WriteConnection, act_for
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
) -> UUID:
    """The user with this identity, made now if nobody has it yet.

    The transaction is bound to that user afterwards.
    """
    user_id = await queries.user_of_identity(connection, profile.issuer, profile.subject)
    if user_id is None:
        candidate = new_uuid()
        if await queries.claim_identity(connection, profile.issuer, profile.subject, candidate):
            await act_for(connection, candidate, candidate)
            ends = clock.now() + signup_trial if signup_trial else None
            await queries.create_user(connection, candidate, profile.email, profile.name, ends)
            return candidate
        # Two first sign-ins at once: the other one's commit made the row visible.
        user_id = await queries.user_of_identity(connection, profile.issuer, profile.subject)
        assert user_id is not None
    await act_for(connection, user_id, user_id)
    await queries.update_profile(connection, user_id, profile.email, profile.name)
    return user_id


async def create_company(
    db: Database, name: str, owner_id: UUID, *, tier: str, seats: int | None = None
) -> UUID:
    account_id = new_uuid()
    async with db.write(account_id, owner_id) as connection:
        await _check_user(connection, owner_id)
        await queries.create_company(connection, account_id, name, tier, seats)
        await queries.put_member(connection, account_id, owner_id, "owner")
    return account_id


async def put_member(db: Database, account_id: UUID, user_id: UUID, role: Role) -> None:
    """Adds a member, or gives a member another role."""
    async with db.write(account_id, user_id) as connection:
        if not await queries.lock_company(connection, account_id):
            raise NotFound("There is no such company.")
        await _check_user(connection, user_id)
        new = await queries.put_member(connection, account_id, user_id, role)
        limit, taken = await queries.seats(connection, account_id)
        if new and limit is not None and taken > limit:
            raise Conflict(
                f"All {limit} seats of this company are taken. Free one or add seats first."
            )


async def set_tier(db: Database, account_id: UUID, tier: str) -> None:
    async with db.write(account_id) as connection:
        if not await queries.set_tier(connection, account_id, tier):
            raise NotFound("There is no such account.")


async def _check_user(connection: ReadConnection, user_id: UUID) -> None:
    if not await queries.user_exists(connection, user_id):
        raise NotFound("There is no such user. Users are made when they first sign in.")
