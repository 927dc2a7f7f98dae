"""The address of a tool server that a request asks for: URL, transport and headers."""

from collections.abc import Mapping

from rota.mcp.request_schemas import Bearer, ConnectServer, UpdateServer
from rota.mcp.session import Address
from rota.platform.egress import Egress, EgressRefused
from rota.platform.errors import FieldError, ValidationFailed

AUTHORIZATION = "authorization"


def new_address(egress: Egress, body: ConnectServer) -> Address:
    headers = dict(body.headers)
    if body.auth is not None:
        _check_one_authorization(headers)
        headers |= _bearer(body.auth)
    return Address(checked_url(egress, body.url), body.transport, headers)


def checked_url(egress: Egress, text: str) -> str:
    try:
        return str(egress.check_url(text).copy_with(fragment=None))
    except EgressRefused as error:
        raise ValidationFailed.of(FieldError("url", str(error))) from None


def changed_address(egress: Egress, current: Address, body: UpdateServer) -> Address:
    """The current address with the changes. Stored secrets are never sent to another URL."""
    given = body.model_fields_set
    url = current.url if body.url is None else checked_url(egress, body.url)
    authorization, headers = _split(current.headers)
    new_authorization, new_headers = _split(body.headers or {})
    if body.auth is not None:
        _check_one_authorization(new_authorization)
        new_authorization = _bearer(body.auth)
    if url != current.url:
        replaced = "auth" in given or bool(new_authorization)
        stored = {"auth": authorization and not replaced, "headers": headers}
        missing = [name for name, secret in stored.items() if secret and name not in given]
        if missing:
            raise ValidationFailed.of(
                *[
                    FieldError(
                        name,
                        "is stored for the current URL and is not sent to another one. Send it "
                        "again, or null to remove it",
                    )
                    for name in missing
                ]
            )
    if "auth" in given or new_authorization:
        authorization = new_authorization
    if "headers" in given:
        headers = new_headers
    return Address(url, body.transport or current.transport, headers | authorization)


def changed_fields(before: Address, after: Address) -> list[str]:
    """The names of the fields that differ, as a request calls them."""
    old_authorization, old_headers = _split(before.headers)
    new_authorization, new_headers = _split(after.headers)
    pairs: dict[str, tuple[object, object]] = {
        "url": (before.url, after.url),
        "transport": (before.transport, after.transport),
        "headers": (old_headers, new_headers),
        "auth": (old_authorization, new_authorization),
    }
    return [name for name, (old, new) in pairs.items() if old != new]


def _split(headers: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The Authorization header, and the others."""
    found = {name: value for name, value in headers.items() if name.lower() == AUTHORIZATION}
    return found, {name: value for name, value in headers.items() if name not in found}


def _bearer(auth: Bearer) -> dict[str, str]:
    return {"Authorization": f"Bearer {auth.token}"}


def _check_one_authorization(headers: Mapping[str, str]) -> None:
    if any(name.lower() == AUTHORIZATION for name in headers):
        raise ValidationFailed.of(
            FieldError("auth", "set either auth or an Authorization header, not both")
        )
