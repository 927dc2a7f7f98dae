"""Runs commands as a user does, with a home folder of their own."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from rota.cli import cli

# Of the machine that runs the tests.
UNSET = ("ROTA_API_KEY", "ROTA_URL", "ROTA_BASE_URL", "ROTA_PROFILE", "ROTA_ACCOUNT")


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Each line as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Terminal:
    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def profiles(self) -> Path:
        return self.home / "rota" / "profiles.json"

    def environment(self, changes: Mapping[str, str | None] | None = None) -> dict[str, str | None]:
        return {
            **dict.fromkeys(UNSET),
            "XDG_CONFIG_HOME": str(self.home),
            **self.variables,
            **(changes or {}),
        }

    async def __call__(
        self, *arguments: str, typed: str | None = None, **changes: str | None
    ) -> Done:
        """In a thread, because the service runs in this one."""
        done = await asyncio.to_thread(
            CliRunner().invoke, cli, arguments, input=typed, env=self.environment(changes)
        )
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    async def ok(self, *arguments: str, **options: Any) -> Done:
        done = await self(*arguments, **options)
        assert done.code == 0, (arguments, done.out, done.err)
        return done
