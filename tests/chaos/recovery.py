"""Point-in-time recovery of the stack's PostgreSQL, as docs/backup.md describes it."""

import asyncio
import os
import shutil
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import asyncpg

from rota.dev import postgres
from rota.dev.stack import Stack


@dataclass
class Recovery:
    """An archive of WAL and a base backup, next to the cluster."""

    stack: Stack

    @property
    def archive(self) -> Path:
        return self.stack.directory.path / "archive"

    @property
    def backup(self) -> Path:
        return self.stack.directory.path / "backups" / "base"

    @property
    def cluster(self) -> Path:
        return self.stack.postgres.cluster

    @classmethod
    async def start(cls, stack: Stack) -> "Recovery":
        """Turns archiving on."""
        found = cls(stack)
        for folder in (found.archive, found.backup.parent):
            folder.mkdir()
            if os.geteuid() == 0:
                account = postgres._account()
                os.chown(folder, account.pw_uid, account.pw_gid)
        found._configure(
            "archive_mode = on",
            f"archive_command = 'test ! -f {found.archive}/%f && cp %p {found.archive}/%f'",
        )
        await stack.postgres.restart()
        return found

    async def back_up(self) -> None:
        programs = stack_programs(self.stack)
        admin = self.stack.endpoints.admin_database_url
        assert admin is not None
        await _run(
            *postgres.unprivileged(),
            str(programs / "pg_basebackup"),
            "-d",
            admin,
            "-D",
            str(self.backup),
            "--checkpoint=fast",
            "--no-sync",
        )

    async def archive_everything(self) -> None:
        """Closes the current segment, and waits until it is in the archive."""
        admin = self.stack.endpoints.admin_database_url
        connection = await asyncpg.connect(admin)
        try:
            name = await connection.fetchval("SELECT pg_walfile_name(pg_switch_wal())")
        finally:
            await connection.close()
        async with asyncio.timeout(60):
            while not (self.archive / name).exists():
                await asyncio.sleep(0.05)

    async def restore(self, moment: datetime) -> None:
        """Replaces the cluster with the backup, and replays the archive up to the moment."""
        await self.stack.postgres.stop()
        shutil.rmtree(self.cluster)
        await _run("cp", "-a", str(self.backup), str(self.cluster))
        self._configure(
            "archive_mode = off",
            f"restore_command = 'cp {self.archive}/%f %p'",
            f"recovery_target_time = '{moment.isoformat()}'",
            "recovery_target_action = 'promote'",
        )
        signal = self.cluster / "recovery.signal"
        signal.touch()
        if os.geteuid() == 0:
            account = postgres._account()
            os.chown(signal, account.pw_uid, account.pw_gid)
        await self.stack.postgres.start()
        connection = await asyncpg.connect(self.stack.endpoints.admin_database_url)
        try:
            async with asyncio.timeout(60):
                while await connection.fetchval("SELECT pg_is_in_recovery()"):
                    await asyncio.sleep(0.05)
        finally:
            await connection.close()

    def _configure(self, *lines: str) -> None:
        with (self.cluster / "postgresql.conf").open("a") as output:
            output.write("".join(f"{line}\n" for line in lines))


def stack_programs(stack: Stack) -> Path:
    found = stack.postgres._programs()
    assert found is not None
    return found


async def _run(*command: str) -> None:
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
