"""The format of Stripe's requests and responses: nested forms, lists and errors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Object = dict[str, Any]
Params = dict[str, Any]

MAX_PAGE = 100


class StripeError(Exception):
    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        fields = {"type": kind, "message": str(self), "code": code, "param": param}
        self.body = {"error": {name: value for name, value in fields.items() if value}}


def missing(param: str) -> StripeError:
    return StripeError(f"Missing required param: {param}.", code="parameter_missing", param=param)


def parse(pairs: Iterable[tuple[str, str]]) -> Params:
    """Parses `a[b][0][c]=d` into {"a": {"b": [{"c": "d"}]}}."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        *path, last = name.replace("]", "").split("[")
        node = root
        for key in path:
            node = node.setdefault(key or str(len(node)), {})
            if not isinstance(node, dict):
                raise StripeError("Invalid request: duplicate parameter.", param=name)
        node[last or str(len(node))] = value
    return {name: _with_lists(value) for name, value in root.items()}


def _with_lists(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if all(key.isdecimal() for key in node):
        return [_with_lists(node[key]) for key in sorted(node, key=int)]
    return {key: _with_lists(value) for key, value in node.items()}


def integer(params: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = params.get(name, default)
    if value is None:
        raise missing(name)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise StripeError(
            f"Invalid integer: {value}", code="parameter_invalid_integer", param=name
        ) from None


def since(params: Params) -> int:
    """The time in `created[gte]`, or 0."""
    return integer(params.get("created") or {}, "gte", 0)


def boolean(params: Mapping[str, Any], name: str) -> bool:
    value = params.get(name, "false")
    if value not in ("true", "false"):
        raise StripeError(f"Invalid boolean: {value}", param=name)
    return bool(value == "true")


def check_names(params: Params, accepted: Sequence[str]) -> None:
    for name in params:
        if name not in (*accepted, "expand"):
            raise StripeError(
                f"Received unknown parameter: {name}", code="parameter_unknown", param=name
            )


def merged(metadata: Mapping[str, str], changes: Any) -> dict[str, str]:
    """Updates metadata as Stripe does: an empty value removes the key."""
    together = {**metadata, **(changes if isinstance(changes, dict) else {})}
    return {name: value for name, value in together.items() if value != ""}


def listed(newest_first: Sequence[Object], params: Params, url: str) -> Object:
    """One page of a list, after `starting_after`."""
    limit = min(max(integer(params, "limit", 10), 1), MAX_PAGE)
    begin = 0
    if after := params.get("starting_after"):
        begin = 1 + next(
            (place for place, found in enumerate(newest_first) if found["id"] == after),
            len(newest_first),
        )
    page = list(newest_first[begin : begin + limit])
    more = len(newest_first) > begin + limit
    return {"object": "list", "data": page, "has_more": more, "url": url}
