"""The API description, and a web page that shows it. The page loads nothing from other hosts."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rota.platform.http.files import File

# Swagger UI's files. Each release of this package contains the current ones.
_PACKAGE = "fastapi_swagger.resources"
# The page runs Swagger UI and the script in its own text, and talks only to this service.
_POLICY = (
    "default-src 'none'; script-src 'self' 'sha256-{hash}'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
_KINDS = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}


def docs_routes(title: str, describe: Callable[[], dict[str, Any]]) -> APIRouter:
    """`describe` returns the description, which never changes in a process."""
    router = APIRouter(include_in_schema=False)
    page = get_swagger_ui_html(
        title=title,
        openapi_url="/openapi.json",
        swagger_js_url="/docs/swagger-ui-bundle.js",
        swagger_css_url="/docs/swagger-ui.css",
        swagger_favicon_url="data:,",
        # By default it would send the description to a public validator.
        swagger_ui_parameters={"validatorUrl": None, "persistAuthorization": False},
    )

    page.headers["Content-Security-Policy"] = _policy(bytes(page.body))

    @cache
    def description() -> File:
        text = json.dumps(describe(), ensure_ascii=False, separators=(",", ":"))
        return File.of(text.encode(), "application/json")

    @router.get("/openapi.json")
    async def openapi(request: Request) -> Response:
        return description().response(request, "no-cache")

    @router.get("/docs")
    async def docs() -> Response:
        return page

    @router.get("/docs/{name}")
    async def asset(request: Request, name: str) -> Response:
        if name not in _KINDS:
            raise HTTPException(404)
        return _asset(name).response(request, "public, max-age=86400")

    return router


@cache
def _asset(name: str) -> File:
    return File.of(files(_PACKAGE).joinpath(name).read_bytes(), _KINDS[name])


def _policy(page: bytes) -> str:
    (script,) = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
    return _POLICY.format(hash=base64.b64encode(hashlib.sha256(script).digest()).decode())
