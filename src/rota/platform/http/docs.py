"""The API description as a web page. The page loads nothing from other hosts."""

import base64
import hashlib
import re
from importlib.resources import files

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.exceptions import HTTPException
from starlette.responses import Response

# Swagger UI's files. Each release of this package contains the current ones.
_PACKAGE = "fastapi_swagger.resources"
# The page runs Swagger UI and the script in its own text, and talks only to this service.
_POLICY = (
    "default-src 'none'; script-src 'self' 'sha256-{hash}'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
_KINDS = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}


def docs_routes(title: str) -> APIRouter:
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

    @router.get("/docs")
    async def docs() -> Response:
        return page

    @router.get("/docs/{name}")
    async def asset(name: str) -> Response:
        if name not in _KINDS:
            raise HTTPException(404)
        content = files(_PACKAGE).joinpath(name).read_bytes()
        headers = {"Cache-Control": "public, max-age=86400"}
        return Response(content, headers=headers, media_type=_KINDS[name])

    return router


def _policy(page: bytes) -> str:
    (script,) = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
    return _POLICY.format(hash=base64.b64encode(hashlib.sha256(script).digest()).decode())
