"""What a client is made with: wrong options are refused at once, and connections have one owner."""

import httpx

from rota_sdk import AsyncRota, Rota
from tests.sdk.doors import Door


async def test_only_the_client_that_opened_the_connections_closes_them(kind: str) -> None:
    door = Door.open(kind, "http://x", "rota_x")
    http = door.client._transport.http
    await door.with_options(timeout=5).close()
    assert not http.is_closed
    await door.close()
    assert http.is_closed


async def test_an_http_client_of_the_caller_stays_open() -> None:
    async with httpx.AsyncClient() as own:
        async with AsyncRota(base_url="http://x", http_client=own):
            pass
        assert not own.is_closed
    with httpx.Client() as mine:
        with Rota(base_url="http://x", http_client=mine):
            pass
        assert not mine.is_closed
