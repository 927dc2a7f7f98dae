"""`rota api`: any request to the service, with the credential of the profile."""

import json
import re
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rota.cli.exits import ExitCode, fail
from rota.cli.output import print_text
from rota.cli.session import Session
from rota.cli.text import safe_json

if TYPE_CHECKING:
    import httpx

    from rota_sdk._operation import Operation
    from rota_sdk._paging import Cursor
    from rota_sdk._requests import Request

# Headers that have another way.
FIXED = {
    # Other users of the machine can see arguments.
    "Authorization": "use a profile or ROTA_API_KEY.",
    "X-Service-Account": "use --account.",
    "Idempotency-Key": "use --idempotency-key.",
}
# What a list says about its pages, and not with its items.
PLACES = frozenset(("offset", "page"))


class Method(StrEnum):
    GET = "GET"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"
    HEAD = "HEAD"
    OPTIONS = "OPTIONS"


def api(
    session: Session,
    method: Annotated[Method, typer.Argument(help="GET, POST, …", case_sensitive=False)],
    path: Annotated[str, typer.Argument(help="The path, such as /api/tasks?limit=5.")],
    field: Annotated[
        list[str] | None,
        typer.Option("--field", "-f", help="A text, as name=value. Can be repeated."),
    ] = None,
    typed_field: Annotated[
        list[str] | None,
        typer.Option("--typed-field", "-F", help="JSON, as name=value: a number, true, null, …"),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--input", help="Send this file as the body. - is standard input."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", help="A header, as 'Name: value'. Can be repeated."),
    ] = None,
    paginate: Annotated[
        bool, typer.Option("--paginate", help="Read all pages of a list, and print one list.")
    ] = False,
    include: Annotated[
        bool, typer.Option("--include", "-i", help="Print the status and the headers too.")
    ] = False,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Default: a new key for each command that can use one.")
    ] = None,
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Send no credential.")] = False,
) -> None:
    """Send a request to the API and print the response.

    Fields form the body, or the query of a GET request and of a request with --input. The JSON is
    indented on a terminal, and as the service sent it otherwise.

    Example: rota api POST /api/tasks -f name=Import -F priority=3
    """
    if paginate and method is not Method.GET:
        fail("--paginate reads lists: use GET.", ExitCode.USAGE)
    fields = _fields(field or [], typed_field or [])
    content = None if source is None else _read(source)
    is_body = content is None and method not in (Method.GET, Method.HEAD)
    if is_body and fields:
        content = json.dumps(fields).encode()
    query = {} if is_body else {name: _parameter(value) for name, value in fields.items()}
    headers = _headers(header or [], content, idempotency_key)
    request = _request(session, method.value, path, query, headers, content)
    exchange = Exchange(session, anonymous=anonymous)
    try:
        if paginate:
            text = json.dumps(_all_pages(exchange, request), ensure_ascii=False).encode()
        else:
            text = exchange.send(request).content
    finally:
        if include and exchange.last is not None:
            _print_head(exchange.last)
    print_body(text)


class Exchange:
    """Sends requests, and keeps the last response, also if it is an error."""

    def __init__(self, session: Session, *, anonymous: bool) -> None:
        client = session.anonymous_client if anonymous else session.client
        self._transport = client._transport
        self.last: httpx.Response | None = None
        self._transport.http.event_hooks = {"response": [self._received]}

    def send(self, request: "Request") -> "httpx.Response":
        return self._transport.send(request)

    def _received(self, response: "httpx.Response") -> None:
        """Called before the body is read."""
        self.last = response
        if response.headers.get("Content-Type", "").startswith("text/event-stream"):
            # Its end would never come.
            raise ValueError(
                "The response is a stream of events. Use rota tasks follow TASK or rota listen."
            )


def _fields(texts: list[str], typed: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for given, is_json in (*((each, False) for each in texts), *((each, True) for each in typed)):
        name, equals, value = given.partition("=")
        if not (name and equals):
            fail(f"{given!r} is not a field. Write it as name=value.", ExitCode.USAGE)
        try:
            found[name] = json.loads(value) if is_json else value
        except ValueError:
            fail(f"{name}: the value is not JSON. Use -f for a text.", ExitCode.USAGE)
    return found


def _headers(given: list[str], content: bytes | None, key: str | None) -> dict[str, str]:
    found = {"Accept": "application/json"}
    if content is not None:
        found["Content-Type"] = "application/json"
    if key is not None:
        found["Idempotency-Key"] = key
    for each in given:
        name, colon, value = (part.strip() for part in each.partition(":"))
        if not re.fullmatch(r"[A-Za-z0-9-]+", name) or not colon or not value.isprintable():
            fail(f"{each!r} is not a header. Write it as 'Name: value'.", ExitCode.USAGE)
        if name.title() in FIXED:
            fail(f"{name} cannot be set with --header: {FIXED[name.title()]}", ExitCode.USAGE)
        found[name.title()] = value
    return found


def _parameter(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _read(source: str) -> bytes:
    from pathlib import Path

    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        fail(f"Cannot read {source}: {error.strerror}.", ExitCode.USAGE)


def _request(
    session: Session,
    method: str,
    path: str,
    query: dict[str, str],
    headers: dict[str, str],
    content: bytes | None,
) -> "Request":
    from uuid import uuid4

    import httpx

    from rota_sdk._requests import Request

    place, _, asked = _path(session, path).partition("?")
    operation = _operation(method, place)
    is_keyed = operation is not None and operation.is_keyed
    if is_keyed:
        headers = {"Idempotency-Key": str(uuid4()), **headers}
    return Request(
        method,
        place,
        httpx.QueryParams(asked).merge(query),
        headers,
        content,
        # A response that is lost must not have its effect twice.
        is_repeatable=is_keyed or method in ("GET", "HEAD", "OPTIONS", "PUT", "DELETE"),
    )


def _path(session: Session, path: str) -> str:
    """The path at the service. The credential never goes to another server."""
    if "://" in path.partition("?")[0]:
        base = session.url + "/"
        if not path.startswith(base):
            fail(f"{path!r} is not a URL of {session.url}. Give only the path.", ExitCode.USAGE)
        path = path.removeprefix(base)
    return "/" + path.partition("#")[0].lstrip("/")


def _operation(method: str, path: str) -> "Operation[Any] | None":
    """The operation of the API that has this path, if there is one."""
    from rota_sdk._generated import operations
    from rota_sdk._operation import Operation

    parts = path.split("/")
    for each in vars(operations).values():
        if not isinstance(each, Operation) or each.method != method:
            continue
        known = each.path.split("/")
        # A part in braces stands for any value. The fixed parts of another operation come first.
        if len(known) == len(parts) and all(
            name == part or name.startswith("{") for name, part in zip(known, parts, strict=True)
        ):
            return each
    return None


def _all_pages(exchange: Exchange, request: "Request") -> dict[str, Any]:
    """The response with the items of all pages."""
    from dataclasses import replace

    from rota_sdk._paging import Page

    if given := PLACES & set(request.query):
        fail(f"--paginate reads all pages. Leave out {', '.join(given)}.", ExitCode.USAGE)
    first = _list(exchange.send(request))
    name = next((name for name, value in first.items() if isinstance(value, list)), None)
    if name is None or not isinstance(first.get("total"), int):
        fail("The response is not a list with pages. Leave out --paginate.", ExitCode.USAGE)
    cursor = _cursor(first, request)
    items = cursor.take(Page(first[name], first["total"]))
    while not cursor.is_done:
        # The size of a page stays in the query.
        asked = {**request.query, **cursor.query()}
        page = _list(exchange.send(replace(request, query=asked)))
        items += cursor.take(Page(page[name], page["total"]))
    return {**first, name: items}


def _list(response: "httpx.Response") -> dict[str, Any]:
    try:
        found = response.json()
        return found if isinstance(found, dict) else _no_list()
    except ValueError:
        _no_list()


def _no_list() -> NoReturn:
    fail("The response is not a list with pages. Leave out --paginate.", ExitCode.USAGE)


def _cursor(first: dict[str, Any], request: "Request") -> "Cursor[Any]":
    from rota_sdk._paging import Numbers, Offsets, Sequences

    if "page" in first:
        return Numbers(None)
    if "lastSequence" in first:
        return Sequences(None, int(request.query.get("after", 0)), lambda each: each["sequence"])
    return Offsets(None, lambda each: each.get("id") or json.dumps(each, sort_keys=True))


def _print_head(response: "httpx.Response") -> None:
    lines = [f"{response.http_version} {response.status_code} {response.reason_phrase}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    print_text("\n".join(lines) + "\n")


def print_body(content: bytes) -> None:
    if not content:
        return
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    text = content.decode(errors="replace")
    try:
        shown = safe_json(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
    except ValueError:
        print_text(text)
    else:
        print_text(shown)
