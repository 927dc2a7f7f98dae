"""Clients that public generators make from the description can be installed and used.

The generators come from PyPI and npm, pinned by hash. Without a network, and without the caches
of uv and npm, these tests fail: a client that is not tried out may not work.
"""

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.openapi.document import FOLDER, VARIANTS
from tests.peers import installed
from tests.service import Service

PYTHON_CLIENT = Path(__file__).parents[1] / "peers" / "python_client"
PINNED = PYTHON_CLIENT / "requirements.txt"
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(autouse=True)
def duration(request: pytest.FixtureRequest) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"{request.node.name}: {time.perf_counter() - started:.1f} s")


async def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """The output of a command, which must succeed. It runs without our PYTHONPATH."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode == 0, f"{command}: {output}"
    return output


async def new_venv(folder: Path, *packages: str | Path) -> Path:
    """A fresh environment with these packages. Returns the folder of its programs."""
    await run(UV, "venv", "--quiet", "--python", sys.executable, folder, cwd=folder.parent)
    programs = folder / "bin"
    await run(
        UV,
        "pip",
        "install",
        "--quiet",
        "--python",
        programs / "python",
        *packages,
        cwd=folder.parent,
    )
    return programs


@pytest.fixture(scope="session")
async def generator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generator") / "venv"
    return await new_venv(folder, "--require-hashes", "--requirement", PINNED)


async def test_a_generated_python_client_installs_and_works(
    furnished: Service, generator: Path, tmp_path: Path
) -> None:
    path = f"{generator}{os.pathsep}{os.environ['PATH']}"
    # The generator has no name for lines of JSON. This is its setting for such types.
    settings = tmp_path / "generator.yaml"
    settings.write_text("content_type_overrides:\n  application/x-ndjson: text/plain\n")
    output = await run(
        generator / "openapi-python-client",
        "generate",
        "--config",
        settings,
        "--path",
        FOLDER / f"variant-{furnished.variant}.json",
        "--output-path",
        tmp_path / "client",
        cwd=tmp_path,
        PATH=path,
    )
    assert "Warning" not in output
    models = {file.stem for file in (tmp_path / "client/rota_client/models").glob("*.py")}
    enums = sorted(name for name in models if name.endswith(("api_version", "status")))
    assert enums == [
        "allowance_status",
        "api_version",
        "server_status",
        "subscription_status",
        "task_status",
    ]
    programs = await new_venv(
        tmp_path / "venv",
        "--constraint",
        PINNED,
        "--build-constraint",
        PINNED,
        tmp_path / "client",
    )
    person = await furnished.sign_in()
    seen = json.loads(
        await run(
            programs / "python",
            PYTHON_CLIENT / "use.py",
            cwd=tmp_path,
            ROTA_URL=str(furnished.http.base_url),
            ROTA_TOKEN=person.token,
        )
    )
    assert seen["listed"] == [seen["created"]]
    assert seen["fetched"] == "Made by a client"
    assert seen["missing"] == [404, "NOT_FOUND"]


async def test_a_generated_typescript_client_compiles(tmp_path: Path) -> None:
    peer = await asyncio.to_thread(installed, "typescript")
    descriptions = [FOLDER / f"variant-{variant}.json" for variant in VARIANTS]
    await run("node", "generate.mjs", tmp_path, *descriptions, cwd=peer)
    for name in ("use.ts", "tsconfig.json"):
        shutil.copy(peer / name, tmp_path)
    await run("node", peer / "node_modules/typescript/bin/tsc", cwd=tmp_path)
