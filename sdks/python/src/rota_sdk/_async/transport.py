"""Sends requests, and sends them again where that helps."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from rota_sdk import errors
from rota_sdk._operation import Operation
from rota_sdk._requests import Options, Request, T, connection_error, error_of, is_gone, read
from rota_sdk._retries import MOST_GROWTH, backoff_s, delay_s, may_have_worked

# The service sends something every 15 s, so a stream that is silent for longer is dead.
SILENCE_S = 45.0


class AsyncTransport:
    def __init__(self, options: Options, http: httpx.AsyncClient) -> None:
        self.options = options
        self.http = http

    def within(self, most_s: float | None) -> "AsyncTransport":
        """The same with timeouts of at most so long."""
        return self if most_s is None else AsyncTransport(self.options.within(most_s), self.http)

    async def call(
        self, operation: Operation[T], request: Request, max_retries: int | None = None
    ) -> T:
        try:
            return read(operation, await self.send(request, max_retries))
        except errors.RotaError as error:
            error.idempotency_key = request.idempotency_key
            raise

    async def end(self, operation: Operation[T], request: Request) -> None:
        """Sends a request that ends something. It has worked too if a lost attempt has."""
        response = await self.send(request)
        if response.status_code != 204:
            read(operation, response)

    async def send(self, request: Request, max_retries: int | None = None) -> httpx.Response:
        """The response. Raises an error if every attempt fails."""
        limit = self.options.max_retries if max_retries is None else max_retries
        attempt = 0
        may_be_done = False
        waits = 0
        waiting_since: float | None = None
        while True:
            try:
                return await self._attempt(request)
            except errors.RotaError as error:
                if may_be_done and is_gone(error, request):
                    return httpx.Response(204)
                may_be_done = may_be_done or may_have_worked(error)
                error.was_sent = may_be_done
                is_busy = isinstance(error, errors.ConflictError) and error.is_in_progress
                if is_busy and request.idempotency_key and limit:
                    # An earlier attempt was cut off and still runs, or that of an earlier process
                    # with the same key. Its response is stored at its end. The time of that attempt
                    # does not count: it may have used up the whole timeout.
                    now = time.monotonic()
                    waiting_since = now if waiting_since is None else waiting_since
                    pause_s = backoff_s(min(waits, MOST_GROWTH))
                    patience_s = self.options.timeouts.read
                    if patience_s is not None:
                        left_s = waiting_since + patience_s - now
                        if left_s <= 0:
                            raise
                        pause_s = min(pause_s, left_s)
                    await asyncio.sleep(pause_s)
                    waits += 1
                    continue
                wait_s = delay_s(error, attempt, is_repeatable=request.is_repeatable)
                if wait_s is None or attempt >= limit:
                    raise
                await asyncio.sleep(wait_s)
                attempt += 1

    async def _attempt(self, request: Request) -> httpx.Response:
        try:
            response = await self.http.request(
                request.method,
                self.options.base_url + request.path,
                params=request.query,
                headers={**self.options.headers, **request.headers},
                content=request.content,
                timeout=self.options.timeouts,
                follow_redirects=False,
            )
        except httpx.RequestError as error:
            raise connection_error(error, self.options.base_url) from error
        except httpx.InvalidURL as error:
            raise ValueError(f"An argument makes the URL of the request invalid: {error}") from None
        if not response.is_success:
            raise error_of(response, self.options)
        return response

    @asynccontextmanager
    async def stream(
        self, request: Request, after: int | None, content: str = "text/event-stream"
    ) -> AsyncIterator[httpx.Response]:
        """An open stream, without retries. Errors of the connection are APIConnectionError."""
        resume = {"Last-Event-ID": str(after)} if after is not None else {}
        stream = {"Accept": content, "Accept-Encoding": "identity"}
        limits = self.options.timeouts
        timeout = httpx.Timeout(
            SILENCE_S, connect=limits.connect, write=limits.write, pool=limits.pool
        )
        try:
            async with self.http.stream(
                request.method,
                self.options.base_url + request.path,
                params=request.query,
                headers={**self.options.headers, **request.headers, **stream, **resume},
                timeout=timeout,
                follow_redirects=False,
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response, self.options)
                if not response.headers.get("Content-Type", "").startswith(content):
                    raise errors.UnreadableResponseError(
                        f"The response is not {content}. Check the URL of the service."
                    )
                yield response
        except httpx.RequestError as error:
            raise connection_error(error, self.options.base_url) from error
        except httpx.InvalidURL as error:
            raise ValueError(f"An argument makes the URL of the request invalid: {error}") from None
