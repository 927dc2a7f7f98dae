"""An installation in which everything works, and the settings that lead to it."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rota.agents.sync import sync
from rota.dev.stack import Stack
from tests.service import Service, environment, free_port, serving

CATALOG = Path(__file__).parents[2] / "catalog"
KEY = "right-key"


@dataclass(frozen=True)
class Installation:
    service: Service
    variables: Mapping[str, str]
    model_url: str

    def database(self, **changes: str) -> str:
        """The database URL with another login, host or database."""
        at = urlsplit(self.variables["ROTA_DATABASE_URL"])
        login = changes.get("login") or at.netloc.rpartition("@")[0]
        host = changes.get("host") or f"{at.hostname}:{at.port}"
        return f"postgresql://{login}@{host}/{changes.get('name') or at.path[1:]}" + changes.get(
            "options", ""
        )

    def models(self, **changes: Any) -> str:
        """ROTA_MODELS, with these fields changed or, if None, left out."""
        choice = {"model": "small", "baseUrl": self.model_url, "apiKey": KEY, "free": True}
        changed = {name: value for name, value in (choice | changes).items() if value is not None}
        return json.dumps(dict.fromkeys(MODEL_NAMES, changed))


# The names that the agents of the catalog use.
MODEL_NAMES = ("default", "fast", "strong")


async def _complete(request: Request) -> Response:
    asked = await request.json()
    if request.headers["authorization"] != f"Bearer {KEY}":
        return JSONResponse({"error": {"message": "wrong key"}}, 401)
    if asked["model"] != "small":
        return JSONResponse({"error": {"message": "no such model"}}, 404)
    message = {"role": "assistant", "content": "OK"}
    return JSONResponse(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "small",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
        }
    )


@pytest.fixture(scope="package")
async def installation(stack: Stack) -> AsyncIterator[Installation]:
    app = Starlette(routes=[Route("/v1/chat/completions", _complete, methods=["POST"])])
    async with Service.start(stack, variant="a", name="doctored") as service:
        at = service.settings.model_copy(update={"port": free_port()})
        async with serving(app, at):
            await sync(service.database_url, CATALOG)
            async with service.owner() as owner:
                await owner.execute("DROP DATABASE IF EXISTS unmigrated")
                await owner.execute("CREATE DATABASE unmigrated")
                await owner.execute("DROP DATABASE IF EXISTS ascii")
                await owner.execute(
                    "CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
                )
                await owner.execute("CREATE ROLE no_relay LOGIN NOINHERIT PASSWORD 'word'")
                await owner.execute("GRANT rota_app TO no_relay")
            url = f"http://127.0.0.1:{at.port}/v1"
            made = Installation(service, dict(environment(service.settings)), url)
            yield replace(made, variables=dict(made.variables) | {"ROTA_MODELS": made.models()})
            async with service.owner() as owner:
                await owner.execute("DROP DATABASE unmigrated")
                await owner.execute("DROP DATABASE ascii")
                await owner.execute("DROP ROLE no_relay")
