"""What an error of PostgreSQL means to an operator, and what to do about it."""

import socket
import ssl

import asyncpg

from rota.platform.crypto import SealBroken

# The errors of a database that is down, not migrated, or not the right one.
EXPLAINED = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, SealBroken)

_NOT_MIGRATED = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.UndefinedFunctionError,
)


def explain(error: Exception, variable: str = "ROTA_DATABASE_URL") -> str:
    """One line: what happened, and what to do. `variable` is the setting that has the URL."""
    if isinstance(error, SealBroken):
        return (
            "ROTA_SECRET_KEY is not the key that encrypted the secrets in this database. Set that "
            "key, or add it to ROTA_SECRET_KEYS_OLD. If it is lost: rota admin signing-keys rotate "
            "--immediately"
        )
    if isinstance(error, OSError) and error.filename:
        return f"Cannot read {error.filename}: {error.strerror}."
    # Some drivers describe the statement and link to documentation after the first line.
    detail = str(error).partition("\n")[0].strip() or type(error).__name__
    if isinstance(error, _NOT_MIGRATED):
        return f"The database schema is not up to date ({detail}). Run: rota admin migrate"
    return f"Cannot use the database ({detail}). {_fix(error, variable)}"


def _fix(error: Exception, variable: str) -> str:
    match error:
        case asyncpg.ClientConfigurationError() if "root certificate" in str(error):
            return f"Add sslrootcert=/path/to/ca.pem to {variable}."
        case asyncpg.ClientConfigurationError():
            return (
                f"{variable} is not a PostgreSQL URL. Write it as "
                "postgresql://user:password@host:5432/database, and escape special characters of "
                "the password with %."
            )
        case asyncpg.InvalidCatalogNameError():
            return "Create it, then run: rota admin migrate"
        case asyncpg.InvalidAuthorizationSpecificationError():
            return f"Correct the user and the password in {variable}, or pg_hba.conf."
        case asyncpg.InsufficientPrivilegeError():
            return (
                "If this command needs the login that owns the tables, set "
                "ROTA_MIGRATION_DATABASE_URL. Otherwise, grant the roles of the service to the "
                f"login in {variable}."
            )
        case asyncpg.TooManyConnectionsError():
            return "Raise max_connections, lower ROTA_DATABASE_POOL_SIZE, or use PgBouncer."
        case asyncpg.CannotConnectNowError():
            return "Wait until PostgreSQL has started."
        case ssl.SSLError() | ConnectionError() if "SSL" in str(error):
            return f"Correct sslmode and sslrootcert in {variable}."
        case socket.gaierror():
            return f"Correct the host in {variable}, or the DNS of this machine."
        case OSError():
            return f"Check that PostgreSQL runs and that no firewall blocks it. Check {variable}."
    return f"Check {variable}."
