"""A small identity provider. Tests control its documents and count its requests."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from joserfc.jwk import Key

from rota.platform.issuer import Issuer
from tests.auth.forge import Json, Mint, untrusted_key
from tests.service import free_port

CLIENT_ID = "rota-tests"


class Provider:
    def __init__(self, *keys: Key) -> None:
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.keys = {str(key.kid): key for key in keys}
        self.untrusted: dict[str, Key] = {}
        self.visits: Counter[str] = Counter()
        self.discovery: Any = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/jwks"}
        self.jwks: Any = {"keys": [key.as_dict(private=False) for key in keys]}
        # The response of the endpoint for codes on other devices.
        self.device: Any = {}
        # The response of the token endpoint, and the requests that it got.
        self.tokens: Any = {}
        self.token_requests: list[tuple[Mapping[str, str], dict[str, str]]] = []

    @property
    def setting(self) -> Issuer:
        return Issuer(issuer=self.issuer, client_id=CLIENT_ID)

    def claims(self, **changes: Any) -> Json:
        now = int(time.time())
        return {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": f"person-{secrets.token_hex(6)}",
            "iat": now,
            "exp": now + 300,
            "jti": secrets.token_hex(8),
        } | changes

    def mint(self, kid: str, alg: str | None = None, **claims: Any) -> Mint:
        key = self.keys[kid]
        if kid not in self.untrusted:
            self.untrusted[kid] = untrusted_key(key)
        header = {"alg": alg or key.alg, "kid": kid, "typ": "JWT"}
        return Mint(header, self.claims(**claims), key, self.untrusted[kid])

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["Provider"]:
        app = FastAPI()

        @app.get("/.well-known/openid-configuration")
        async def discovery() -> Response:
            return self._respond("discovery", self.discovery)

        @app.get("/jwks")
        async def jwks() -> Response:
            return self._respond("jwks", self.jwks)

        @app.post("/device")
        async def device() -> Response:
            return self._respond("device", self.device)

        @app.post("/token")
        async def token(request: Request) -> Response:
            form = dict(parse_qsl((await request.body()).decode(), strict_parsing=True))
            self.token_requests.append((request.headers, form))
            return self._respond("token", self.tokens)

        server = uvicorn.Server(
            uvicorn.Config(
                app, host="127.0.0.1", port=self.port, log_config=None, timeout_keep_alive=75
            )
        )
        running = asyncio.create_task(server._serve())
        async with asyncio.timeout(30):
            while not server.started:
                await asyncio.sleep(0.01)
        try:
            yield self
        finally:
            server.should_exit = True
            await running

    def _respond(self, name: str, document: Any) -> Response:
        self.visits[name] += 1
        if isinstance(document, Response):
            return document
        if isinstance(document, bytes):
            return Response(document, media_type="application/json")
        return JSONResponse(document)
