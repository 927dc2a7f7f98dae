"""The database roles of the service, and the check that they limit what it can do.

A login has the rights of a role only inside a transaction that sets it. `SET ROLE NONE` returns to
the rights of the login, so in production the login must have none of its own.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import asyncpg

from rota.platform.start_checks import StartRefused

# Both own nothing and are subject to row security. The relay can also read and change the rows of
# all accounts in the few tables that background work needs.
APPLICATION_ROLE = "rota_app"
RELAY_ROLE = "rota_relay"

_RIGHTS = """
WITH tables AS (
    SELECT DISTINCT relowner AS owner FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
)
SELECT role.rolname AS role, login.rolname AS login,
       role.rolsuper OR role.rolbypassrls AS role_escapes,
       login.rolsuper OR login.rolbypassrls AS login_escapes,
       EXISTS (SELECT FROM tables WHERE pg_has_role(role.oid, owner, 'MEMBER')) AS role_owns,
       EXISTS (SELECT FROM tables WHERE pg_has_role(login.oid, owner, 'MEMBER')) AS login_owns
FROM pg_roles AS role, pg_roles AS login
WHERE role.rolname = current_user AND login.rolname = session_user
"""


async def check_role(
    begin: Callable[[], AbstractAsyncContextManager[Any]], role: str, *, production: bool
) -> None:
    """Refuses to start if transactions of `begin` do not have exactly the rights of `role`."""
    try:
        async with begin() as connection:
            found = await connection.fetchrow(_RIGHTS)
    except asyncpg.InvalidParameterValueError as error:
        raise StartRefused(f"{error}. Run: rota admin migrate") from error
    except asyncpg.InsufficientPrivilegeError as error:
        only = " Only the login of workers must have it." if role == RELAY_ROLE else ""
        raise StartRefused(
            f"{error}. Grant it to the login in ROTA_DATABASE_URL: GRANT {role} TO <login>.{only}"
        ) from error
    if found["role"] != role:
        raise StartRefused(
            f"Transactions run as the role {found['role']} instead of {role}. Check the settings "
            "of the login and of the pooler in front of PostgreSQL."
        )
    if found["role_escapes"] or found["role_owns"]:
        raise StartRefused(
            f"The role {role} must not own tables, be a superuser or have BYPASSRLS: row security "
            "would not apply to it. Remove these rights."
        )
    if production and (found["login_escapes"] or found["login_owns"]):
        raise StartRefused(
            f"The login {found['login']} owns the tables, is a superuser or has BYPASSRLS. In "
            f"production, use a login that is only a member of {role}, and set the owner's in "
            "ROTA_MIGRATION_DATABASE_URL."
        )
