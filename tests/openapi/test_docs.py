"""The page with the description works where there is no other network."""

import re

import httpx
import pytest
from fastapi import FastAPI

from rota.platform.http.docs import docs_routes


@pytest.fixture
async def http() -> httpx.AsyncClient:
    app = FastAPI(docs_url=None, openapi_url=None)
    app.include_router(docs_routes("Rota", lambda: {"info": {"title": "Rota – é"}}))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://rota.test")


async def test_the_page_loads_nothing_from_elsewhere(http: httpx.AsyncClient) -> None:
    page = (await http.get("/docs")).text
    assert "/openapi.json" in page
    assert re.findall(r"https?://\S+", page) == []
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert loaded == ["/docs/swagger-ui.css", "data:,", "/docs/swagger-ui-bundle.js"]


@pytest.mark.parametrize(
    ("name", "kind", "marker"),
    [
        ("swagger-ui-bundle.js", "text/javascript; charset=utf-8", "SwaggerUIBundle"),
        ("swagger-ui.css", "text/css; charset=utf-8", ".swagger-ui"),
    ],
)
async def test_the_files_that_it_loads_are_served(
    http: httpx.AsyncClient, name: str, kind: str, marker: str
) -> None:
    response = await http.get(f"/docs/{name}")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == kind
    assert marker in response.text
    # Large files that everybody can ask for.
    assert response.headers["Content-Encoding"] == "gzip"


async def test_the_description_is_compressed_and_not_sent_again_if_it_is_known(
    http: httpx.AsyncClient,
) -> None:
    response = await http.get("/openapi.json")
    assert response.json() == {"info": {"title": "Rota – é"}}
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Content-Encoding"] == "gzip"
    again = await http.get("/openapi.json", headers={"If-None-Match": response.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["__init__.py", "..%2fmain.py", "favicon-32x32.png", "x"])
async def test_no_other_file_is_served(http: httpx.AsyncClient, name: str) -> None:
    assert (await http.get(f"/docs/{name}")).status_code == 404
