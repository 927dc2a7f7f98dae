"""The wheel is complete: installed by itself, it migrates, syncs the catalog and serves."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import asyncpg
import httpx
import pytest

from rota.dev.stack import Stack
from tests.packaging.installed import (
    REPOSITORY,
    Installation,
    build_wheel,
    built_files,
    contents,
    tracked_files,
)
from tests.service import drop_database, free_port, until_live

DATABASE = "from_wheel"
MIGRATE = ("admin", "migrate")
SYNC_AGENTS = ("admin", "agents", "sync")
VERSION = version("rota")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return Installation.of(wheel, tmp_path_factory.mktemp("installed") / "environment")


@pytest.fixture
async def settings(stack: Stack) -> dict[str, str]:
    """The settings of a service on an empty database."""
    connection = await asyncpg.connect(stack.endpoints.database_url)
    await drop_database(connection, DATABASE)
    await connection.execute(f"CREATE DATABASE {DATABASE}")
    await connection.close()
    port = free_port()
    return stack.environment() | {
        "ROTA_ENV": "test",
        "ROTA_PORT": str(port),
        "ROTA_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "ROTA_DATABASE_URL": f"{stack.endpoints.database_url.rpartition('/')[0]}/{DATABASE}",
        "ROTA_REDIS_URL": f"{stack.endpoints.redis_url.rpartition('/')[0]}/127",
        "ROTA_LOG_LEVEL": "WARNING",
    }


@asynccontextmanager
async def served(
    installed: Installation, settings: dict[str, str]
) -> AsyncIterator[httpx.AsyncClient]:
    process = await asyncio.create_subprocess_exec(
        *installed.command("rota", "serve"),
        cwd=installed.folder,
        env=installed.environment(settings),
    )
    try:
        async with httpx.AsyncClient(base_url=settings["ROTA_PUBLIC_URL"], timeout=30) as http:
            await until_live(http, process)
            yield http
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    package = {name.removeprefix("src/") for name in tracked_files("src/rota")}
    data = {f"rota/{name}" for name in tracked_files("migrations", "catalog")}
    data |= {name.removeprefix("src/") for name in built_files()}
    assert "rota/static/index.html" in data
    about = f"rota-{VERSION}.dist-info"
    files = {f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    assert contents(wheel) == package | data | files | {f"{about}/licenses/LICENSE"}


def test_type_checkers_see_the_annotations(wheel: Path) -> None:
    assert "rota/py.typed" in contents(wheel)


def test_the_command_prints_its_version(installed: Installation) -> None:
    assert installed.run(installed.command("rota", "--version")) == f"rota {VERSION}\n"


def test_every_module_can_be_imported_from_the_wheel(installed: Installation) -> None:
    script = (
        "import importlib, pkgutil, rota\n"
        "names = [m.name for m in pkgutil.walk_packages(rota.__path__, 'rota.')]\n"
        "for name in names:\n"
        "    if not name.endswith('__main__') and not name.startswith('rota.migrations'):\n"
        "        try: importlib.import_module(name)\n"
        # An extra, so it is not installed here.
        "        except ModuleNotFoundError as error:\n"
        "            if not (name.startswith('rota.a2a.') and error.name == 'a2a'): raise\n"
        "print(rota.__file__, len(names))\n"
    )
    file, count = installed.run(installed.command("python", "-c", script)).split()
    assert Path(file).is_relative_to(installed.folder)
    assert int(count) > 100


async def test_the_service_runs_from_the_wheel(
    installed: Installation, settings: dict[str, str], stack: Stack
) -> None:
    await asyncio.to_thread(installed.run, installed.command("rota", *MIGRATE), settings)
    await asyncio.to_thread(installed.run, installed.command("rota", *SYNC_AGENTS), settings)

    async with served(installed, settings) as http:
        assert (await http.get("/health/live")).json() == {"status": "live"}
        assert (await http.get("/health/ready")).json()["status"] == "ready"
        published = json.loads((REPOSITORY / "openapi" / "variant-a.json").read_text())
        assert (await http.get("/openapi.json")).json() == published
        home = (await http.get("/")).text
        script = re.search(r'src="(/assets/[^"]+\.js)"', home)
        assert script, home
        for page in ("/docs", "/signin", script.group(1)):
            assert (await http.get(page)).status_code == 200, page

        async with httpx.AsyncClient(base_url=stack.endpoints.issuer_url) as issuer:
            id_token = (await issuer.post("/dev/token", json={"sub": "ada"})).json()["idToken"]
        session = (await http.post("/api/auth/session", json={"idToken": id_token})).json()
        auth = {"Authorization": f"Bearer {session['token']}"}
        found = await http.get("/api/agents/process-writer", headers=auth)
        assert found.status_code == 200, found.text
        assert int(found.headers["RateLimit-Remaining"]) < int(found.headers["RateLimit-Limit"])
