"""Forged tokens of all kinds, for session tokens and ID tokens.

Most of them are signed with the real key, so the fault itself is the only reason to refuse them.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

from tests.auth.forge import (
    WITHOUT,
    Mint,
    b64,
    by,
    by_hmac,
    dumps,
    non_canonical,
    padded,
    parts,
    unsigned,
    untrusted_key,
)

Forgery = Callable[[Mint], str]


def _alg(value: object, *, keep_signature: bool = False) -> Forgery:
    sign = None if keep_signature else unsigned
    return lambda mint: mint.token(header={"alg": value}, sign=sign)


def _kid(value: object) -> Forgery:
    return lambda mint: mint.token(header={"kid": value})


def _hmac(alg: str, secret: Callable[[Mint], bytes]) -> Forgery:
    digest = alg.replace("HS", "sha")
    return lambda mint: mint.token(header={"alg": alg}, sign=by_hmac(secret(mint), digest))


def _own_key_inside(name: str, value: Callable[[Mint], Any]) -> Forgery:
    """Signed with an untrusted key that the header contains."""
    return lambda mint: mint.token(header={name: value(mint)}, sign=by(mint.alg, mint.untrusted))


def _claims(raw: bytes) -> Forgery:
    return lambda mint: mint.with_claims(raw)


def _header(raw: bytes) -> Forgery:
    return lambda mint: mint.with_header(raw)


def _twice(original: dict[str, Any], name: str, first: object) -> bytes:
    """JSON with a duplicate member. Some parsers use the first one, others the last."""
    return b"{" + dumps(name) + b":" + dumps(first) + b"," + dumps(original)[1:]


def _deep(mint: Mint) -> str:
    nested = b'{"a":' * 100 + b"1" + b"}" * 100
    return mint.with_claims(dumps(mint.claims)[:-1] + b',"deep":' + nested + b"}")


def _reencoded(position: int, reencode: Callable[[str], str]) -> Forgery:
    """One segment in another encoding. The signature covers this encoding."""

    def forge(mint: Mint) -> str:
        segments = [b64(padded(dumps(mint.header))), b64(padded(dumps(mint.claims)))]
        if position < 2:
            segments[position] = reencode(segments[position])
            return mint.signed(".".join(segments))
        signed = mint.signed(".".join(segments))
        head, _, signature = signed.rpartition(".")
        return f"{head}.{reencode(signature)}"

    return forge


def _with_equals(segment: str) -> str:
    return segment + "=" * (-len(segment) % 4)


def _flattened(mint: Mint) -> str:
    protected, payload, signature = parts(mint.token())
    return json.dumps({"protected": protected, "payload": payload, "signature": signature})


def _flipped(bit: int) -> Forgery:
    def flip(signature: bytes) -> bytes:
        at = bit // 8 % len(signature)
        return signature[:at] + bytes([signature[at] ^ 1 << bit % 8]) + signature[at + 1 :]

    return lambda mint: mint.resigned(flip)


def _swapped_claims(mint: Mint) -> str:
    header, _, signature = parts(mint.token())
    return f"{header}.{b64(dumps(mint.claims | {'sub': 'another-user'}))}.{signature}"


FORGERIES: dict[str, Forgery] = {
    # No signature at all.
    "alg none": _alg("none"),
    "alg None": _alg("None"),
    "alg NONE": _alg("NONE"),
    "alg nOnE": _alg("nOnE"),
    "alg none and a space": _alg("none "),
    "alg none with a valid signature": _alg("none", keep_signature=True),
    "alg none without the last dot": lambda mint: _alg("none")(mint).rstrip("."),
    "alg empty": _alg("", keep_signature=True),
    "alg null": _alg(None, keep_signature=True),
    "alg missing": _alg(WITHOUT, keep_signature=True),
    "alg a number": _alg(0, keep_signature=True),
    "alg true": _alg(True, keep_signature=True),
    "alg a list": lambda mint: mint.token(header={"alg": [mint.alg]}),
    "alg an object": lambda mint: mint.token(header={"alg": {"name": mint.alg}}),
    "alg in lower case": lambda mint: mint.token(header={"alg": mint.alg.lower() + " "}),
    "signature empty": lambda mint: mint.token(sign=unsigned),
    # The public key as the secret of a symmetric algorithm.
    "HS256 with the public key's PEM": _hmac("HS256", lambda mint: mint.pem),
    "HS256 with the PEM without its last line end": _hmac("HS256", lambda m: m.pem.strip()),
    "HS256 with the public key's DER": _hmac("HS256", lambda mint: mint.der),
    "HS256 with the public key's JWK": _hmac("HS256", lambda mint: mint.jwk),
    "HS384 with the public key's PEM": _hmac("HS384", lambda mint: mint.pem),
    "HS512 with the public key's PEM": _hmac("HS512", lambda mint: mint.pem),
    "HS512 with the public key's JWK": _hmac("HS512", lambda mint: mint.jwk),
    "HS256 with an empty secret": _hmac("HS256", lambda mint: b""),
    "HS256 with the kid": _hmac("HS256", lambda mint: mint.header["kid"].encode()),
    # Algorithms that do not match the key.
    "alg of another family": lambda mint: mint.token(
        header={"alg": "ES256K" if mint.alg != "ES256K" else "RS256"}
    ),
    "alg ES256 with another key's signature": lambda mint: mint.token(
        header={"alg": "ES384"}, sign=lambda _: bytes(96)
    ),
    "ECDSA with zeros for r and s": lambda mint: mint.token(
        header={"alg": "ES256"}, sign=lambda _: bytes(64)
    ),
    "alg RSA1_5": _alg("RSA1_5", keep_signature=True),
    "alg dir": _alg("dir", keep_signature=True),
    # Signatures that are nearly right.
    "signature cut by a byte": lambda mint: mint.resigned(lambda s: s[:-1]),
    "signature of half its length": lambda mint: mint.resigned(lambda s: s[: len(s) // 2]),
    "signature with a byte more": lambda mint: mint.resigned(lambda s: s + b"\0"),
    "signature with a byte before": lambda mint: mint.resigned(lambda s: b"\0" + s),
    "signature twice": lambda mint: mint.resigned(lambda s: s + s),
    "signature with its first bit flipped": _flipped(0),
    "signature with a middle bit flipped": _flipped(257),
    "signature with its last bit flipped": _flipped(-1),
    "signature of zeros": lambda mint: mint.resigned(lambda s: bytes(len(s))),
    "signature backwards": lambda mint: mint.resigned(lambda s: s[::-1]),
    "signature of another token": lambda mint: mint.token(sign=lambda data: mint.sign(data + b"x")),
    "signature of the claims alone": lambda mint: mint.token(
        sign=lambda data: mint.sign(data.partition(b".")[2])
    ),
    "signature of an untrusted key with the same kid": lambda mint: mint.token(
        sign=by(mint.alg, mint.untrusted)
    ),
    "claims changed with the old signature": _swapped_claims,
    # The key ID.
    "kid unknown": _kid("0123456789ab"),
    "kid empty": _kid(""),
    "kid a path": _kid("../../../../../../dev/null"),
    "kid a URL": _kid("http://127.0.0.1:1/key.json"),
    "kid with SQL": _kid("x' UNION SELECT 'AAAA' --"),
    "kid with a command": _kid("/dev/null; sleep 10"),
    "kid a number": _kid(0),
    "kid true": _kid(True),
    "kid a list": lambda mint: mint.token(header={"kid": [mint.header["kid"]]}),
    "kid an object": lambda mint: mint.token(header={"kid": {"kid": mint.header["kid"]}}),
    "kid missing where there are several keys": _kid(WITHOUT),
    "kid null where there are several keys": _kid(None),
    "kid with a space": lambda mint: mint.token(header={"kid": mint.header["kid"] + " "}),
    "kid with NUL": lambda mint: mint.token(header={"kid": mint.header["kid"] + "\0"}),
    "kid of four thousand characters": _kid("k" * 4000),
    "kid unknown, empty secret": lambda mint: mint.token(
        header={"kid": "/dev/null", "alg": "HS256"}, sign=by_hmac(b"")
    ),
    # Keys inside the token.
    "jwk in the header": _own_key_inside("jwk", lambda m: m.untrusted.as_dict(private=False)),
    "jku in the header": _own_key_inside("jku", lambda m: "http://127.0.0.1:1/jwks"),
    "x5u in the header": _own_key_inside("x5u", lambda m: "http://127.0.0.1:1/cert"),
    "x5c in the header": _own_key_inside(
        "x5c",
        lambda m: [base64.b64encode(m.untrusted.as_der(private=False)).decode()],  # type: ignore[union-attr]
    ),
    "jwk in the header and no kid": lambda mint: mint.token(
        header={"jwk": mint.untrusted.as_dict(private=False), "kid": WITHOUT},
        sign=by(mint.alg, mint.untrusted),
    ),
    "jwk in the header with a fresh key's kid": lambda mint: mint.token(
        header={"jwk": (key := untrusted_key(mint.key)).as_dict(private=False), "kid": "fresh"},
        sign=by(mint.alg, key),
    ),
    # Extensions.
    "crit with an unknown name": lambda m: m.token(header={"crit": ["urn:x"], "urn:x": 1}),
    "crit with a known name": lambda mint: mint.token(header={"crit": ["kid"]}),
    "crit empty": lambda mint: mint.token(header={"crit": []}),
    "crit not a list": lambda mint: mint.token(header={"crit": "kid"}),
    "crit null": lambda mint: mint.token(header={"crit": None}),
    "b64 false": lambda mint: mint.token(header={"b64": False, "crit": ["b64"]}),
    "b64 false without crit": lambda mint: mint.token(header={"b64": False}),
    "b64 true": lambda mint: mint.token(header={"b64": True}),
    # JSON that two parsers read differently.
    "alg twice, none first": lambda mint: mint.with_header(_twice(mint.header, "alg", "none")),
    "alg twice, the same": lambda mint: mint.with_header(_twice(mint.header, "alg", mint.alg)),
    "kid twice": lambda mint: mint.with_header(_twice(mint.header, "kid", "x")),
    "typ twice": lambda mint: mint.with_header(_twice(mint.header, "typ", "x")),
    "sub twice": lambda mint: mint.with_claims(_twice(mint.claims, "sub", "x")),
    "iss twice": lambda mint: mint.with_claims(_twice(mint.claims, "iss", "x")),
    "aud twice": lambda mint: mint.with_claims(_twice(mint.claims, "aud", "x")),
    "exp twice, the same": lambda m: m.with_claims(_twice(m.claims, "exp", m.claims["exp"])),
    "sub twice, once escaped": lambda mint: mint.with_claims(
        b'{"\\u0073ub":"x",' + dumps(mint.claims)[1:]
    ),
    "an unknown claim twice": lambda mint: mint.with_claims(
        b'{"x":1,"x":2,' + dumps(mint.claims)[1:]
    ),
    "a claim twice, inside a claim": lambda mint: mint.with_claims(
        b'{"x":{"y":1,"y":2},' + dumps(mint.claims)[1:]
    ),
    # Claims that are not an object, or not JSON.
    "claims a list": lambda mint: mint.with_claims(dumps([mint.claims])),
    "claims a string": lambda mint: mint.with_claims(dumps(json.dumps(mint.claims))),
    "claims a number": _claims(b"7"),
    "claims null": _claims(b"null"),
    "claims true": _claims(b"true"),
    "claims an empty object": _claims(b"{}"),
    "claims cut off": lambda mint: mint.with_claims(dumps(mint.claims)[:-1]),
    "claims with trailing data": lambda mint: mint.with_claims(dumps(mint.claims) + b"{}"),
    "claims with a comment": lambda mint: mint.with_claims(dumps(mint.claims) + b"// x"),
    "claims with NaN": lambda mint: mint.with_claims(b'{"x":NaN,' + dumps(mint.claims)[1:]),
    "claims with Infinity": lambda m: m.with_claims(b'{"x":Infinity,' + dumps(m.claims)[1:]),
    "claims with 1e999": lambda mint: mint.with_claims(b'{"x":1e999,' + dumps(mint.claims)[1:]),
    "claims with NUL": lambda mint: mint.token(claims={"x": "a\0b"}),
    "claims with a raw NUL": lambda m: m.with_claims(b'{"x":"\0",' + dumps(m.claims)[1:]),
    "claims with a lone surrogate": lambda mint: mint.token(claims={"x": "\ud800"}),
    "claims that are not UTF-8": lambda m: m.with_claims(b'{"x":"\xff",' + dumps(m.claims)[1:]),
    "claims in UTF-16": lambda mint: mint.with_claims(json.dumps(mint.claims).encode("utf-16")),
    "claims after a byte order mark": lambda m: m.with_claims(b"\xef\xbb\xbf" + dumps(m.claims)),
    "claims a hundred levels deep": _deep,
    "sub missing": lambda mint: mint.token(claims={"sub": WITHOUT}),
    "sub null": lambda mint: mint.token(claims={"sub": None}),
    "sub empty": lambda mint: mint.token(claims={"sub": ""}),
    "sub a number": lambda mint: mint.token(claims={"sub": 1}),
    "sub a list": lambda mint: mint.token(claims={"sub": [mint.claims["sub"]]}),
    "iss missing": lambda mint: mint.token(claims={"iss": WITHOUT}),
    "iss unknown": lambda mint: mint.token(claims={"iss": "https://evil.example"}),
    "iss with a slash": lambda mint: mint.token(claims={"iss": mint.claims["iss"] + "/"}),
    "iss in capitals": lambda mint: mint.token(claims={"iss": mint.claims["iss"].upper()}),
    "iss a list": lambda mint: mint.token(claims={"iss": [mint.claims["iss"]]}),
    "aud missing": lambda mint: mint.token(claims={"aud": WITHOUT}),
    "aud another client": lambda mint: mint.token(claims={"aud": "another-client"}),
    "aud empty": lambda mint: mint.token(claims={"aud": []}),
    "aud null": lambda mint: mint.token(claims={"aud": None}),
    "aud with a suffix": lambda m: m.token(claims={"aud": m.claims["aud"] + "x"}),
    "aud an object": lambda mint: mint.token(claims={"aud": {mint.claims["aud"]: True}}),
    "iat missing": lambda mint: mint.token(claims={"iat": WITHOUT}),
    "iat a string": lambda mint: mint.token(claims={"iat": str(mint.claims["iat"])}),
    "iat true": lambda mint: mint.token(claims={"iat": True}),
    "iat null": lambda mint: mint.token(claims={"iat": None}),
    "iat a list": lambda mint: mint.token(claims={"iat": [mint.claims["iat"]]}),
    "iat a day ahead": lambda mint: mint.token(
        claims={t: mint.claims[t] + 86_400 for t in ("iat", "exp")}
    ),
    "exp missing": lambda mint: mint.token(claims={"exp": WITHOUT}),
    "exp a string": lambda mint: mint.token(claims={"exp": str(mint.claims["exp"])}),
    "exp true": lambda mint: mint.token(claims={"exp": True}),
    "exp null": lambda mint: mint.token(claims={"exp": None}),
    "exp zero": lambda mint: mint.token(claims={"exp": 0}),
    "exp negative": lambda mint: mint.token(claims={"exp": -mint.claims["exp"]}),
    "exp too large": lambda mint: mint.token(
        claims={"exp": 10**399, "iat": mint.claims["iat"] + 0.5}
    ),
    # Headers that are not an object, or not JSON.
    "header a list": lambda mint: mint.with_header(dumps([mint.header])),
    "header a string": _header(b'"header"'),
    "header null": _header(b"null"),
    "header an empty object": _header(b"{}"),
    "header cut off": lambda mint: mint.with_header(dumps(mint.header)[:-1]),
    "header that is not UTF-8": lambda m: m.with_header(b'{"x":"\xff",' + dumps(m.header)[1:]),
    "header and claims exchanged": lambda mint: mint.of(dumps(mint.claims), dumps(mint.header)),
    # Base64 that only lenient parsers accept, with a valid signature.
    "header with padding": _reencoded(0, _with_equals),
    "claims with padding": _reencoded(1, _with_equals),
    "signature with padding": _reencoded(2, lambda s: s + "=" * (-len(s) % 4 or 4)),
    "header with unused bits": _reencoded(0, non_canonical),
    "claims with unused bits": _reencoded(1, non_canonical),
    "signature with unused bits": _reencoded(2, non_canonical),
    "header with a space inside": _reencoded(0, lambda s: s[:5] + " " + s[5:]),
    "claims with a space inside": _reencoded(1, lambda s: s[:5] + " " + s[5:]),
    "claims with a tab at the end": _reencoded(1, lambda s: s + "\t"),
    "claims with a star inside": _reencoded(1, lambda s: s[:5] + "*" + s[5:]),
    "claims with an accent inside": _reencoded(1, lambda s: s[:5] + "é" + s[5:]),
    "claims of an impossible length": _reencoded(1, lambda s: s + "A" * (5 - len(s) % 4)),
    "signature in the other base64": lambda mint: (
        mint.signed("e30.e30", lambda _: b"\xfb\xff" * 32).replace("-", "+").replace("_", "/")
    ),
    # Other numbers of segments, and other formats.
    "a space before": lambda mint: " " + mint.token(),
    "a space inside": lambda mint: mint.token().replace(".", ". ", 1),
    "only the header": lambda mint: parts(mint.token())[0],
    "no signature segment": lambda mint: mint.token().rpartition(".")[0],
    "no header": lambda mint: "." + mint.token().partition(".")[2],
    "no claims": lambda mint: "{0}..{2}".format(*parts(mint.token())),
    "a dot before": lambda mint: "." + mint.token(),
    "a dot after": lambda mint: mint.token() + ".",
    "four segments": lambda mint: mint.token() + ".e30",
    "the shape of an encrypted token": lambda mint: ".".join(
        [b64(b'{"alg":"dir","enc":"A256GCM"}'), "", b64(bytes(12)), b64(bytes(40)), b64(bytes(16))]
    ),
    "an encrypted header on three segments": lambda mint: mint.token(
        header={"enc": "A256GCM", "alg": "dir"}
    ),
    "the JSON serialisation": _flattened,
    "two tokens": lambda mint: f"{mint.token()},{mint.token()}",
    "the word bearer again": lambda mint: f"Bearer {mint.token()}",
    "longer than any valid token": lambda mint: mint.token(claims={"x": "x" * 8192}),
    "a token inside a token": lambda mint: mint.token(
        header={"cty": "JWT"}, claims=dict.fromkeys(mint.claims, WITHOUT) | {"jwt": mint.token()}
    ),
    "a hundred dots": lambda mint: "." * 100,
    "the word null": lambda mint: "null",
}

# Unusual tokens that are valid and must be accepted.
VALID: dict[str, Forgery] = {
    "unchanged": lambda mint: mint.token(),
    "claims in another order": lambda mint: mint.with_claims(
        dumps(dict(reversed(mint.claims.items())))
    ),
    "header in another order": lambda mint: mint.with_header(
        dumps(dict(reversed(mint.header.items())))
    ),
    "JSON with whitespace": lambda mint: mint.with_claims(
        json.dumps(mint.claims, indent=2).encode()
    ),
    "an escaped name": lambda mint: mint.with_claims(
        dumps(mint.claims).replace(b'"sub"', b'"\\u0073ub"')
    ),
    "unknown claims": lambda mint: mint.token(claims={"x": {"y": [1, None, "é"]}}),
    "unknown header members": lambda mint: mint.token(header={"x": 1}),
    "a jku that is ignored": lambda mint: mint.token(header={"jku": "http://127.0.0.1:1/"}),
}
