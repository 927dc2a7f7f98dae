"""The service serves the dashboard's page and files, safely and without limits."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from rota import dashboard
from tests.service import Service


@pytest.fixture
async def http(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=service.settings.public_url) as client:
        yield client


SCREENS = [
    "/",
    "/acct_1/tasks/task_1",
    "/invitation",
    "/money",
    "/signin",
    "/signin/callback?code=x",
    "/unsubscribe",
]


@pytest.mark.parametrize("path", SCREENS)
async def test_every_screen_is_the_same_page_and_is_never_used_from_a_cache_unchecked(
    http: httpx.AsyncClient, path: str
) -> None:
    response = await http.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["cache-control"] == "no-cache"
    again = await http.get(path, headers={"If-None-Match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_the_page_can_run_only_its_own_scripts(http: httpx.AsyncClient) -> None:
    response = await http.get("/")
    policy = response.headers["content-security-policy"]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == directives["connect-src"] == "'self'"
    assert directives["trusted-types"] == "'none'"
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|<style", response.text)


async def test_files_are_compressed_and_cached_for_good(http: httpx.AsyncClient) -> None:
    names = re.findall(r'"(/assets/[^"]+)"', (await http.get("/")).text)
    assert any(name.endswith(".js") for name in names)
    for name in names:
        plain = await http.get(name, headers={"Accept-Encoding": "identity"})
        assert plain.status_code == 200
        assert plain.headers["cache-control"] == dashboard.FOREVER
        assert "content-encoding" not in plain.headers
        gzipped = await http.get(name, headers={"Accept-Encoding": "gzip, deflate"})
        assert gzipped.headers["content-encoding"] == "gzip"
        assert gzipped.content == plain.content


async def test_browsers_get_files_as_the_build_compressed_them(http: httpx.AsyncClient) -> None:
    as_a_browser = {"Accept-Encoding": "gzip, deflate, br, zstd"}
    for name in ["/", *re.findall(r'"(/assets/[^"]+)"', (await http.get("/")).text)]:
        async with http.stream("GET", name, headers=as_a_browser) as response:
            assert response.headers["content-encoding"] == "br"
            assert "Accept-Encoding" in response.headers["vary"]
            sent = b"".join([part async for part in response.aiter_raw()])
        gzipped = await http.get(name, headers={"Accept-Encoding": "gzip"})
        assert len(sent) < int(gzipped.headers["content-length"])


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/signin", "SignIn"),
        ("/acct_1/reviews/task_1", "review"),
        ("/acct_1/tasks", "Tasks"),
        ("/acct_1/tasks/task_1", "TaskScreen"),
        ("/acct_1/settings/keys", "Settings"),
    ],
)
async def test_the_page_names_the_files_that_its_screen_needs(
    http: httpx.AsyncClient, path: str, name: str
) -> None:
    response = await http.get(path)
    links = response.headers["link"].split(", ")
    named = [re.fullmatch(r"<(/assets/[^>]+\.js)>; rel=modulepreload", link) for link in links]
    files = [each[1] for each in named if each]
    assert len(files) == len(links)
    assert any(file.startswith(f"/assets/{name}-") for file in files)
    for file in files:
        assert (await http.get(file)).status_code == 200
        # The page itself names what every screen needs.
        assert file not in response.text


@pytest.mark.parametrize("path", ["/", "/acct_1", "/acct_1/unknown"])
async def test_other_pages_name_no_more_files(http: httpx.AsyncClient, path: str) -> None:
    assert "link" not in (await http.get(path)).headers


@pytest.mark.parametrize(
    "path", ["/assets/unknown.js", "/assets/..%2Findex.html", "/assets/%2e%2e/index.html", "/tasks"]
)
async def test_other_paths_are_not_found(http: httpx.AsyncClient, path: str) -> None:
    response = await http.get(path)
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "NOT_FOUND"


async def test_browsers_find_the_icon_also_where_a_page_names_none(http: httpx.AsyncClient) -> None:
    named, guessed = [await http.get(f"/favicon.{kind}") for kind in ("svg", "ico")]
    assert named.status_code == guessed.status_code == 200
    assert guessed.headers["content-type"] == "image/svg+xml"
    assert guessed.content == named.content


async def test_pages_and_files_do_not_count_toward_a_limit(http: httpx.AsyncClient) -> None:
    for path in ("/favicon.svg", "/favicon.ico", *SCREENS):
        headers = (await http.get(path)).headers
        assert headers["ratelimit-remaining"] == headers["ratelimit-limit"]


async def test_without_a_build_the_page_says_what_to_do(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard, "_files", dict)
    response = await http.get("/")
    assert response.status_code == 503
    assert "make dashboard" in response.text
