"""Signs in with a code that is typed on another device (RFC 8628), without a browser."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from rota.cli.connection import is_protected
from rota.cli.loopback import SCOPE, SignInRefused

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
DISCOVERY = "/.well-known/openid-configuration"
# RFC 8628: what to do if the issuer does not say how often to ask, or asks to slow down.
USUAL_INTERVAL_S = 5.0
SLOW_DOWN_S = 5.0
LEAST_INTERVAL_S = 1.0
MOST_S = 1_800.0


@dataclass(frozen=True)
class DeviceCode:
    """What a person types, and where."""

    code: str
    address: str
    # The address with the code in it, if the issuer has one.
    complete_address: str | None
    secret: str
    interval_s: float
    expires_in_s: float


class DeviceSignIn:
    def __init__(self, issuer: str, client_id: str, http: httpx.Client) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._http = http

    def begin(self) -> DeviceCode:
        _check_protected(self._issuer)
        metadata = self._json(self._send("GET", self._issuer.rstrip("/") + DISCOVERY))
        if metadata.get("issuer") != self._issuer:
            raise SignInRefused(f"{self._issuer} has no valid discovery document.")
        endpoint = metadata.get("device_authorization_endpoint")
        if not endpoint:
            raise SignInRefused(
                f"{self._issuer} does not support sign-in with a code. Leave out --device."
            )
        tokens = metadata.get("token_endpoint")
        if not tokens:
            raise SignInRefused(f"{self._issuer} has no valid discovery document.")
        self._tokens = str(tokens)
        for url in (str(endpoint), self._tokens):
            _check_protected(url)
        form = {"client_id": self._client_id, "scope": SCOPE}
        response = self._send("POST", str(endpoint), form)
        found = self._json(response)
        if response.is_error:
            raise SignInRefused(f"The identity provider refused the sign-in: {_reason(found)}")
        complete = found.get("verification_uri_complete")
        try:
            return DeviceCode(
                str(found["user_code"]),
                str(found.get("verification_uri") or found["verification_url"]),
                str(complete) if complete else None,
                str(found["device_code"]),
                max(float(found.get("interval", USUAL_INTERVAL_S)), LEAST_INTERVAL_S),
                min(float(found.get("expires_in", MOST_S)), MOST_S),
            )
        except (KeyError, TypeError, ValueError):
            raise SignInRefused(f"The answer of {self._issuer} is not complete.") from None

    def id_token(self, code: DeviceCode, sleep: Callable[[float], None] = time.sleep) -> str:
        """Waits until the person has typed the code."""
        form = {"grant_type": GRANT, "device_code": code.secret, "client_id": self._client_id}
        deadline = time.monotonic() + code.expires_in_s
        interval_s = code.interval_s
        problem = ""
        while (left_s := deadline - time.monotonic()) > 0:
            sleep(min(interval_s, left_s))
            try:
                response = self._send("POST", self._tokens, form)
                found = self._json(response)
            except SignInRefused as failure:
                # The person may be about to type the code, so one failure does not end it.
                problem = f" {failure}"
                interval_s += SLOW_DOWN_S
                continue
            problem = ""
            if response.is_success and isinstance(found.get("id_token"), str):
                return str(found["id_token"])
            error = found.get("error")
            if error == "slow_down" or response.is_server_error:
                interval_s += SLOW_DOWN_S
            elif error != "authorization_pending":
                raise SignInRefused(f"The identity provider refused the sign-in: {_reason(found)}")
        raise SignInRefused(f"Sign-in timed out.{problem} Run rota login again.")

    def _send(self, method: str, url: str, form: dict[str, str] | None = None) -> httpx.Response:
        try:
            return self._http.request(
                method, url, data=form, headers={"Accept": "application/json"}
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SignInRefused(f"Cannot reach {self._issuer}: {error}.") from None

    def _json(self, response: httpx.Response) -> Mapping[str, Any]:
        try:
            found = response.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise SignInRefused(f"The answer of {self._issuer} is not JSON.")
        return found


def _check_protected(url: str) -> None:
    if not is_protected(url):
        raise SignInRefused(f"{url} is not encrypted, so it is not used to sign in.")


def _reason(found: Mapping[str, Any]) -> str:
    return str(found.get("error_description") or found.get("error") or "it gave no reason")
