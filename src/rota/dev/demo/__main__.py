"""`python -m rota.dev.demo --port N --data FOLDER`: the demonstration model and tool servers.

The model is at `/v1`. The tool servers are at `/NAME/mcp`, and once more for the company of
`rota dev --demo` at `/fernhill/NAME/mcp`. It does not check who calls it, so it refuses to start in
production.
"""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from rota.dev.demo import SERVERS, model
from rota.dev.demo.definitions import tools_of
from rota.dev.demo.shop import Shop, ToolFailed
from rota.dev.serving import serve

COMPANY = "fernhill"


def server_of(name: str, shop: Shop) -> Starlette:
    """One tool server of a shop, as an app with the endpoint `/mcp`."""

    async def list_tools(*_: Any) -> types.ListToolsResult:
        found = tools_of(name, changed=shop.state["changed"])
        return types.ListToolsResult(tools=[types.Tool.model_validate(each) for each in found])

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        known = [each["name"] for each in tools_of(name)]
        try:
            if params.name not in known:
                raise ToolFailed(f"Tool {params.name} not found. There are {', '.join(known)}.")
            result = shop.call(params.name, params.arguments or {})
        except ToolFailed as failed:
            return types.CallToolResult(content=[_text(str(failed))], is_error=True)
        return types.CallToolResult(content=[_text(json.dumps(result))], structured_content=result)

    server: Server[Any] = Server(
        name,
        version="1.0",
        title=f"Demonstration: {name}",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # Without sessions, so that a restart of this process interrupts nobody.
    return server.streamable_http_app(stateless_http=True, json_response=True)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def build(folder: Path | None = None, *, pace: float = 1) -> Starlette:
    """The whole app. Without a folder, the shops forget everything at the end."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    shops = {name: Shop(folder / f"{name}.json" if folder else None) for name in ("own", COMPANY)}
    apps = {
        f"{prefix}/{name}": server_of(name, shops[shop])
        for shop, prefix in (("own", ""), (COMPANY, f"/{COMPANY}"))
        for name in SERVERS
    }

    async def change(_: Request) -> Response:
        shops[COMPANY].change_definition()
        return JSONResponse({})

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    return Starlette(
        routes=[
            *model.routes(pace),
            Route("/_control/change", change, methods=["POST"]),
            *(Mount(path, app) for path, app in apps.items()),
        ],
        lifespan=lifespan,
    )


def main() -> None:
    if os.environ.get("ROTA_ENV") == "production":
        sys.exit("ROTA_ENV is production. The demonstration does not start.")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pace", type=float, default=1)
    options = parser.parse_args()
    app = build(options.data, pace=options.pace)
    serve(app, options.port, ws="none")


if __name__ == "__main__":
    main()
