"""Creates tokens manually that are valid except for the changes of a test."""

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

Sign = Callable[[bytes], bytes]
Json = dict[str, Any]

# As the value of a change: removes the member.
WITHOUT = object()


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def by(alg: str, key: Key) -> Sign:
    return lambda data: JWSRegistry.algorithms[alg].sign(data, key)


def by_hmac(secret: bytes, digest: str = "sha256") -> Sign:
    return lambda data: hmac.digest(secret, data, digest)


def unsigned(_: bytes) -> bytes:
    return b""


def untrusted_key(key: Key) -> Key:
    """A new key of the same type, which no service trusts."""
    if isinstance(key, RSAKey):
        return RSAKey.generate_key(2048)
    if isinstance(key, ECKey):
        return ECKey.generate_key(key.curve_name)
    return OKPKey.generate_key("Ed25519")


def changed(original: Mapping[str, Any], changes: Mapping[str, Any]) -> Json:
    return {k: v for k, v in {**original, **changes}.items() if v is not WITHOUT}


def dumps(value: object) -> bytes:
    return json.dumps(value).encode()


def parts(token: str) -> list[str]:
    return token.split(".")


def claims_of(token: str) -> Json:
    claims: Json = json.loads(unb64(parts(token)[1]))
    return claims


def header_of(token: str) -> Json:
    header: Json = json.loads(unb64(parts(token)[0]))
    return header


def non_canonical(segment: str) -> str:
    """The same bytes in non-canonical base64: an unused bit is set."""
    assert len(segment) % 4, "this segment has no unused bits"
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    changed_segment = segment[:-1] + alphabet[alphabet.index(segment[-1]) + 1]
    assert unb64(changed_segment) == unb64(segment)
    return changed_segment


def padded(raw: bytes) -> bytes:
    """JSON with a length that leaves unused bits in base64."""
    return raw if len(raw) % 3 else raw + b" "


@dataclass(frozen=True)
class Mint:
    """The header and claims of a valid token, and the real key to sign changed versions of it."""

    header: Json
    claims: Json
    key: Key
    untrusted: Key

    @property
    def alg(self) -> str:
        alg: str = self.header["alg"]
        return alg

    @property
    def sign(self) -> Sign:
        return by(self.alg, self.key)

    def token(
        self,
        header: Mapping[str, Any] | None = None,
        claims: Mapping[str, Any] | None = None,
        sign: Sign | None = None,
    ) -> str:
        """A token with these changes. The real key signs it unless `sign` is given."""
        return self.of(
            dumps(changed(self.header, header or {})),
            dumps(changed(self.claims, claims or {})),
            sign,
        )

    def of(self, header: bytes, claims: bytes, sign: Sign | None = None) -> str:
        return self.signed(f"{b64(header)}.{b64(claims)}", sign)

    def signed(self, text: str, sign: Sign | None = None) -> str:
        return f"{text}.{b64((sign or self.sign)(text.encode()))}"

    def with_header(self, raw: bytes) -> str:
        return self.of(raw, dumps(self.claims))

    def with_claims(self, raw: bytes) -> str:
        return self.of(dumps(self.header), raw)

    def resigned(self, change: Callable[[bytes], bytes]) -> str:
        """The valid token with a changed signature."""
        return self.token(sign=lambda data: change(self.sign(data)))

    @property
    def pem(self) -> bytes:
        return self.key.as_pem(private=False)  # type: ignore[union-attr]

    @property
    def der(self) -> bytes:
        return self.key.as_der(private=False)  # type: ignore[union-attr]

    @property
    def jwk(self) -> bytes:
        return json.dumps(self.key.as_dict(private=False), separators=(",", ":")).encode()
