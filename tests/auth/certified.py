"""A certified OpenID Connect provider from npm, and its pages as a browser uses them."""

import asyncio
import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urljoin

import httpx

from tests.peers import installed
from tests.service import free_port


@asynccontextmanager
async def certified_provider() -> AsyncIterator[str]:
    """Returns its issuer. It has the clients `spa` and, for codes on another device, `cli`."""
    port = free_port()
    # It exits when its standard input closes, also if this process is killed.
    process = await asyncio.create_subprocess_exec(
        "node",
        "server.mjs",
        str(port),
        cwd=installed("oidc"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    issuer = f"http://127.0.0.1:{port}"
    try:
        await _until_available(issuer)
        yield issuer
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 10)


async def _until_available(issuer: str) -> None:
    async with asyncio.timeout(30), httpx.AsyncClient() as http:
        while True:
            try:
                (await http.get(f"{issuer}/.well-known/openid-configuration")).raise_for_status()
                return
            except httpx.TransportError:
                await asyncio.sleep(0.05)


async def next_page(http: httpx.AsyncClient, page: httpx.Response, login: str) -> httpx.Response:
    """Follows a redirect, or submits the form of a page as a person with this login."""
    if page.is_redirect:
        return await http.get(urljoin(str(page.url), page.headers["location"]))
    assert page.status_code == 200, page.text
    action = re.search(r'<form[^>]*action="([^"]+)"', page.text)
    assert action, page.text
    fields = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
    if fields.get("prompt") == "login":
        fields |= {"login": login, "password": "any"}
    return await http.post(urljoin(str(page.url), html.unescape(action[1])), data=fields)
