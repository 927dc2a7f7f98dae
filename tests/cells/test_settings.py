"""The settings of cells and of the router."""

import asyncio
import os
import signal
import sys

import httpx
import pytest
from pydantic import ValidationError

from rota.cells.settings import RouterSettings
from rota.platform.settings import Settings
from tests.cells.fake_cell import FakeCell
from tests.service import free_port, until_live


@pytest.mark.parametrize("name", ["East", "1east", "ea_st", "", "e" * 17, "ea-st"])
def test_the_name_of_a_cell_is_short_and_plain(name: str) -> None:
    with pytest.raises(ValidationError, match="cell"):
        Settings(cell=name)
    with pytest.raises(ValidationError, match="not a valid cell name"):
        Settings(cells={name: "https://x"})


@pytest.mark.parametrize(
    "url", ["", "east", "ftp://east", "https://east/path", "https://u:p@east", "https://east?x"]
)
def test_the_url_of_a_cell_is_a_scheme_and_a_host(url: str) -> None:
    with pytest.raises(ValidationError, match="URL of east"):
        Settings(cells={"east": url})


def test_a_cell_is_one_of_the_cells() -> None:
    with pytest.raises(ValidationError, match="does not name the cell of ROTA_CELL, west"):
        Settings(cell="west", cells={"east": "https://east"})


def test_cells_are_read_from_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_CELLS", "b=http://127.0.0.1:1, a=https://[::1]:2,")
    monkeypatch.setenv("ROTA_CELLS_FULL", "a, ")
    settings = RouterSettings()
    assert list(settings.cells.items()) == [("b", "http://127.0.0.1:1"), ("a", "https://[::1]:2")]
    assert settings.cells_full == ("a",)
    monkeypatch.setenv("ROTA_CELLS", "a=http://x,a=http://y")
    with pytest.raises(ValidationError, match="names the cell a twice"):
        RouterSettings()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"cells": {}}, "ROTA_CELLS must name the cells"),
        ({"cells_full": ("west",)}, "not in ROTA_CELLS"),
        ({"cells_full": ("east",)}, "must leave at least one cell"),
        ({"env": "production"}, "ROTA_METRICS_PORT"),
        ({"env": "production", "metrics_port": 9090}, "https:// in production"),
    ],
)
def test_a_router_without_what_it_needs_does_not_start(
    changes: dict[str, object], problem: str
) -> None:
    usable = {"cells": {"east": "http://east.internal"}}
    with pytest.raises(ValidationError, match=problem):
        RouterSettings(**{**usable, **changes})  # type: ignore[arg-type]


def test_a_router_needs_no_keys() -> None:
    settings = RouterSettings(
        env="production", host="0.0.0.0", metrics_port=9090, cells={"east": "https://east.internal"}
    )
    assert settings.cells
    assert RouterSettings(host="0.0.0.0", cells={"east": "http://127.0.0.1:1"}).cells


async def test_the_command_serves_until_a_signal() -> None:
    port = free_port()
    async with FakeCell().serving() as cell:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "rota.cli",
            "router",
            env=os.environ | {"ROTA_CELLS": f"east={cell.url}", "ROTA_PORT": str(port)},
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
                await until_live(http, process)
                assert (await http.get("/api/plans")).text == "ok"
                assert "rota_router_requests_total" in (await http.get("/metrics")).text
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(30):
                assert await process.wait() == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
