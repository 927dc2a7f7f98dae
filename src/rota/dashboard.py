"""Serves the dashboard: one HTML page, and the files that it loads.

The pages never read the session cookie and never redirect by it. Signing in, and everything that
is shown, goes through the API.
"""

import json
import mimetypes
import re
from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rota.auth.routing import public_router
from rota.platform.http.files import File

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


def dashboard_routes() -> APIRouter:
    router = public_router("Dashboard")

    # Addresses of screens. The page itself decides what to show.
    @router.get("/", include_in_schema=False)
    @router.get("/invitation", include_in_schema=False)
    @router.get("/money", include_in_schema=False)
    @router.get("/signin", include_in_schema=False)
    @router.get("/signin/callback", include_in_schema=False)
    @router.get("/unsubscribe", include_in_schema=False)
    @router.get("/acct_{rest:path}", include_in_schema=False)
    async def page(request: Request) -> Response:
        found = _files().get("index.html")
        if found is None:
            return Response(MISSING, status_code=503, media_type="text/plain")
        response = found.response(request, "no-cache", SECURITY_HEADERS)
        # A browser that has nothing yet loads the files of the screen beside those of the page.
        if needed := _files_of_screen(request.url.path):
            response.headers["Link"] = ", ".join(f"</{each}>; rel=modulepreload" for each in needed)
        return response

    # Browsers ask for the second one on pages that name no icon, such as /openapi.json.
    @router.get("/favicon.svg", include_in_schema=False)
    @router.get("/favicon.ico", include_in_schema=False)
    async def icon(request: Request) -> Response:
        return _found("favicon.svg").response(request, "public, max-age=86400", SECURITY_HEADERS)

    @router.get("/assets/{name}", include_in_schema=False)
    async def asset(request: Request, name: str) -> Response:
        return _found(f"assets/{name}").response(request, FOREVER, SECURITY_HEADERS)

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
    # The build compresses with Brotli, which Python cannot.
    brotli = {name: found.pop(name) for name in list(found) if name.endswith(".br")}
    return {
        name: File.of(
            path.read_bytes(),
            mimetypes.guess_type(name)[0] or "application/octet-stream",
            brotli=brotli[f"{name}.br"].read_bytes() if f"{name}.br" in brotli else None,
        )
        for name, path in found.items()
    }


@cache
def _screens() -> list[tuple[re.Pattern[str], list[str]]]:
    """The paths of screens, and the files that each needs besides those that the page names."""
    found = _files().get("screens.json")
    screens: dict[str, list[str]] = json.loads(found.content) if found else {}
    return [(re.compile(path), needed) for path, needed in screens.items()]


def _files_of_screen(path: str) -> list[str]:
    return next((needed for pattern, needed in _screens() if pattern.fullmatch(path)), [])
