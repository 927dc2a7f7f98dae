"""Plain routes respond as FastAPI's own handler does, and a request is freed when it ends."""

import gc
from collections.abc import Callable
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, BackgroundTasks, Cookie, Depends, Form, Header, Path, Query
from fastapi.exceptions import ResponseValidationError
from fastapi.routing import APIRoute, request_response
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from rota.platform.http.application import Application, Dispatch
from rota.platform.http.plain import plain_handler
from rota.platform.http.responses import add_handlers
from rota.platform.http.routes import Route
from rota.platform.http.schemas import Body, Wire
from tests.load.statements import BODY
from tests.service import Service


class Parcel(Body):
    size: int
    label: str | None = None


class ParcelResponse(Wire):
    seen_size: int
    about: dict[str, Any]


async def caller(request: Request) -> str:
    return request.headers.get("x-caller", "nobody")


def parcels() -> APIRouter:
    router = APIRouter(route_class=Route)

    @router.post("/parcels/{number}", status_code=201)
    async def send(
        request: Request,
        who: Annotated[str, Depends(caller)],
        number: Annotated[int, Path(ge=1)],
        parcel: Parcel,
        priority: Annotated[int, Query(le=9)] = 5,
        route: Annotated[str | None, Query(alias="via")] = None,
        trace: Annotated[str | None, Header(min_length=3)] = None,
    ) -> ParcelResponse:
        about = {
            "who": who,
            "number": number,
            "label": parcel.label,
            "priority": priority,
            "route": route,
            "trace": trace,
            "path": request.url.path,
        }
        return ParcelResponse(seen_size=parcel.size, about=about)

    @router.post("/optional")
    async def optional(parcel: Parcel | None = None) -> ParcelResponse:
        return ParcelResponse(seen_size=parcel.size if parcel else 0, about={})

    @router.get("/teapot")
    async def teapot(key: Annotated[str, Header()]) -> ParcelResponse:
        return PlainTextResponse(key, 418)  # type: ignore[return-value]

    @router.get("/wrong")
    async def wrong() -> ParcelResponse:
        return {"seen_size": "many"}  # type: ignore[return-value]

    return router


def client(prepare: Callable[[APIRoute], None]) -> httpx.AsyncClient:
    app = Application()
    add_handlers(app)
    for route in parcels().routes:
        assert isinstance(route, Route)
        assert plain_handler(route) is not None
        prepare(route)
        app.router.routes.append(route)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test")


def use_fastapi(route: APIRoute) -> None:
    route.app = request_response(route.get_route_handler())


REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/parcels/1", {"json": {"size": 3}}),
    ("POST", "/parcels/1?priority=2&via=sea", {"json": {"size": 3, "label": "x"}}),
    ("POST", "/parcels/1", {"json": {"size": 3}, "headers": {"Trace": "abc", "X-Caller": "me"}}),
    (
        "POST",
        "/parcels/0?priority=10&via=a&via=b",
        {"json": {"size": "3"}, "headers": {"Trace": "a"}},
    ),
    ("POST", "/parcels/one?priority=", {"json": {}}),
    ("POST", "/parcels/1?unknown=1", {"json": {"size": 3}}),
    ("POST", "/parcels/1", {"json": {"size": 3, "lable": "x"}}),
    ("POST", "/parcels/1", {"json": None}),
    ("POST", "/parcels/1", {"json": [1]}),
    ("POST", "/parcels/1", {}),
    ("POST", "/parcels/1", {"content": "{", "headers": {"Content-Type": "application/json"}}),
    ("POST", "/parcels/1", {"content": "size=3", "headers": {"Content-Type": "text/plain"}}),
    ("POST", "/parcels/1", {"content": '{"size": 3}'}),
    ("POST", "/optional", {}),
    ("POST", "/optional", {"json": {"size": 4}}),
    ("POST", "/optional", {"json": None}),
    ("GET", "/teapot", {"headers": {"Key": "short and stout"}}),
    ("GET", "/teapot", {}),
    ("PUT", "/teapot", {}),
    ("GET", "/parcels", {}),
]


@pytest.mark.parametrize(("method", "path", "options"), REQUESTS)
async def test_the_response_is_that_of_fastapi(
    method: str, path: str, options: dict[str, Any]
) -> None:
    async with client(lambda route: None) as plain, client(use_fastapi) as original:
        found = await plain.request(method, path, **options)
        expected = await original.request(method, path, **options)
    assert found.status_code == expected.status_code
    assert found.headers == expected.headers
    assert without_time(found) == without_time(expected)


def without_time(response: httpx.Response) -> Any:
    if response.headers["content-type"] != "application/json":
        return response.text
    body = response.json()
    if "error" in body:
        del body["error"]["timestamp"]
    return body


async def test_a_response_that_does_not_match_its_model_is_an_error() -> None:
    route = next(each for each in parcels().routes if getattr(each, "path", "") == "/wrong")
    assert isinstance(route, APIRoute)
    handle = plain_handler(route)
    assert handle is not None
    with pytest.raises(ResponseValidationError, match="GET /wrong"):
        await handle(Request({"type": "http", "path_params": {}}))


def only_fastapi() -> APIRouter:
    router = APIRouter(route_class=Route)

    @router.get("/blocking")
    def blocking() -> ParcelResponse:
        raise NotImplementedError

    @router.get("/cookie")
    async def cookie(sweet: Annotated[str, Cookie()]) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/header")
    async def header(response: Response) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/later")
    async def later(tasks: BackgroundTasks) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/many")
    async def many(each: Annotated[list[str], Query()]) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/model")
    async def model(parcel: Annotated[Parcel, Query()]) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/optional-model")
    async def optional_model(
        parcel: Annotated[Parcel | None, Query()] = None,
    ) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/checked-default")
    async def checked_default(
        size: Annotated[int, Query(validate_default=True)] = 1,
    ) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/twice")
    async def twice(
        one: Annotated[str, Depends(caller)], two: Annotated[str, Depends(caller)]
    ) -> ParcelResponse:
        raise NotImplementedError

    @router.post("/two")
    async def two(first: Parcel, second: Parcel) -> ParcelResponse:
        raise NotImplementedError

    @router.post("/form")
    async def form(size: Annotated[int, Form()]) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/nested")
    async def nested(it: Annotated[str, Depends(deep)]) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/generator")
    async def generator(it: Annotated[str, Depends(opened)]) -> ParcelResponse:
        raise NotImplementedError

    @router.get("/text", response_class=PlainTextResponse)
    async def text() -> str:
        raise NotImplementedError

    @router.get("/part", response_model_exclude_none=True)
    async def part() -> ParcelResponse:
        raise NotImplementedError

    @router.get("/none", response_model=None)
    async def none() -> None:
        pass

    return router


async def deep(request: Request, who: Annotated[str, Depends(caller)]) -> str:
    raise NotImplementedError


async def opened(request: Request) -> Any:
    yield "it"


@pytest.mark.parametrize("route", only_fastapi().routes, ids=lambda route: str(route.path))
def test_a_route_that_needs_more_keeps_the_handler_of_fastapi(route: APIRoute) -> None:
    assert plain_handler(route) is None


async def test_a_path_is_compared_only_with_routes_that_begin_like_it() -> None:
    called: list[str] = []

    class Noted(Route):
        def matches(self, scope: Any) -> Any:
            called.append(self.path)
            return super().matches(scope)

    router = APIRouter(route_class=Noted)

    for path in (
        "/api/pens/{id}",
        "/api/pens/new",
        "/{rest:path}",
        "/api/ink",
        "/api/pens/{id}/cap",
    ):

        @router.get(path)
        async def found(request: Request) -> dict[str, str]:
            return {"route": request.scope["route"].path}

    app = Application()
    app.router.routes.extend(router.routes)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        assert (await http.get("/api/pens/new")).json() == {"route": "/api/pens/{id}"}
        assert called == ["/api/pens/{id}"]
        called.clear()
        # In the order of the router, also where a route can begin with anything.
        assert (await http.get("/api/ink")).json() == {"route": "/{rest:path}"}
        assert called == ["/{rest:path}"]
        assert (await http.get("/elsewhere")).json() == {"route": "/{rest:path}"}


def test_a_mounted_application_is_a_route_of_every_path() -> None:
    router = APIRouter()
    router.mount("/files", PlainTextResponse("file"))

    @router.get("/api/pens")
    async def pens() -> None:
        pass

    assert [len(routes) for routes in Dispatch(router)._routes.values()] == [2]


@pytest.mark.parametrize("path", ["/api/me", "/api/tasks/{id}", "/api/tasks"])
async def test_a_request_does_not_wait_for_the_garbage_collector(
    service_a: Service, path: str
) -> None:
    person = await service_a.sign_in()
    task = (await person.post("/api/tasks", BODY)).json()["task"]

    async def request() -> None:
        if path == "/api/tasks":
            response = await person.post(path, BODY)
        else:
            response = await person.get(path.format(id=task["id"]))
        assert response.is_success

    for _ in range(5):
        await request()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(20):
            await request()
        gc.collect()
        scopes = [each for each in gc.garbage if isinstance(each, dict) and "asgi" in each]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not scopes
