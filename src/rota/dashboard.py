"""Serves the dashboard: one HTML page, and the files that it loads.

The pages never read the session cookie and never redirect by it. Signing in, and everything that
is shown, goes through the API.
"""

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rota.auth.routing import public_router

# The page runs only its own scripts, talks only to this service and loads nothing from elsewhere,
# whatever text it shows. Nothing can turn text into a script: no Trusted Types policy exists.
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
# The names of these files contain a hash of their content.
FOREVER = "public, max-age=31536000, immutable"
MISSING = (
    "The dashboard is not built. Run `make dashboard`, then start the service again. The API works."
)


@dataclass(frozen=True)
class File:
    content: bytes
    compressed: bytes
    media_type: str
    etag: str

    @classmethod
    def of(cls, path: Traversable) -> "File":
        content = path.read_bytes()
        media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return cls(
            content,
            gzip.compress(content, mtime=0),
            media_type,
            f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        )

    def response(self, request: Request, cache_control: str) -> Response:
        headers = {
            **SECURITY_HEADERS,
            "Cache-Control": cache_control,
            "ETag": self.etag,
            "Vary": "Accept-Encoding",
        }
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(self.compressed, headers=headers, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


def dashboard_routes() -> APIRouter:
    router = public_router("Dashboard")

    # Addresses of screens. The page itself decides what to show.
    @router.get("/", include_in_schema=False)
    @router.get("/invitation", include_in_schema=False)
    @router.get("/money", include_in_schema=False)
    @router.get("/signin", include_in_schema=False)
    @router.get("/signin/callback", include_in_schema=False)
    @router.get("/unsubscribe", include_in_schema=False)
    async def page(request: Request) -> Response:
        found = _files().get("index.html")
        if found is None:
            return Response(MISSING, status_code=503, media_type="text/plain")
        return found.response(request, "no-cache")

    @router.get("/acct_{rest:path}", include_in_schema=False)
    async def account_page(request: Request, rest: str) -> Response:
        response = await page(request)
        if "/reviews/" in rest:
            # Links in messages open a review. A phone without the files loads this one at once.
            for name in _files():
                if name.startswith("assets/review-"):
                    response.headers["Link"] = f"</{name}>; rel=modulepreload"
        return response

    @router.get("/favicon.svg", include_in_schema=False)
    async def icon(request: Request) -> Response:
        return _found("favicon.svg").response(request, "public, max-age=86400")

    @router.get("/assets/{name}", include_in_schema=False)
    async def asset(request: Request, name: str) -> Response:
        return _found(f"assets/{name}").response(request, FOREVER)

    return router


def _found(name: str) -> File:
    found = _files().get(name)
    if found is None:
        raise HTTPException(404)
    return found


@cache
def _files() -> dict[str, File]:
    """Every file that the build made, read once: a request can only name one of these, and a new
    build does not change what a running process serves."""
    static = files("rota").joinpath("static")
    if not static.is_dir():
        return {}
    assets = static.joinpath("assets")
    found = {path.name: path for path in static.iterdir() if path.is_file()}
    found |= {f"assets/{path.name}": path for path in assets.iterdir()}
    return {name: File.of(path) for name, path in found.items()}
