"""Public schemas of signing in and of sessions."""

from typing import Annotated
from uuid import UUID

from rota.auth import queries
from rota.auth.schemas import Variant
from rota.platform import ids
from rota.platform.http import examples
from rota.platform.http.schemas import Body, Timestamp, Total, Wire, doc
from rota.platform.issuer import Issuer as IssuerSetting

_Cookie = Annotated[
    bool,
    doc(
        "Whether to set the session token as a cookie that scripts cannot read, instead of "
        "returning it. Only pages of this service can do this.",
        False,
    ),
]


class StartSession(Body):
    """An ID token to sign in with."""

    id_token: Annotated[
        str,
        doc(
            "An ID token (a JWT) from one of the issuers that `GET /api/auth/config` lists. It "
            "must be less than 10 minutes old, and it works once. Get one from your identity "
            "provider; this example is not a real token.",
            "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl",
            min_length=1,
        ),
    ]
    cookie: _Cookie = False


class StartSessionByCode(Body):
    """An authorization code to sign in with."""

    code: Annotated[
        str,
        doc(
            "The code from the identity provider. It works once.",
            "SplxlOBeZQQYbYS6WxSbIA",
            min_length=1,
            max_length=4096,
        ),
    ]
    code_verifier: Annotated[
        str,
        doc(
            "The PKCE verifier of the authorization request (RFC 7636): 43 to 128 letters, digits "
            "or `-._~`.",
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
            pattern=r"^[A-Za-z0-9._~-]{43,128}$",
        ),
    ]
    redirect_uri: Annotated[
        str,
        doc(
            "The redirect URI of the authorization request: `/signin/callback` of this service, or "
            "`/callback` on a loopback address.",
            "https://rota.example.com/signin/callback",
        ),
    ]
    issuer: Annotated[
        str,
        doc(
            "The issuer of the code, one that `GET /api/auth/config` lists.",
            "https://accounts.example.com",
        ),
    ]
    nonce: Annotated[
        str | None,
        doc(
            "The nonce of the authorization request. The ID token must have the same one. Null if "
            "the request had none.",
            "n-0S6_WzA2Mj",
            max_length=255,
        ),
    ] = None
    cookie: _Cookie = False


class TokenResponse(Wire):
    """A new session token."""

    token: Annotated[
        str | None,
        doc(
            "The session token, a JWT that is valid for 7 days. Its `exp` claim is the time when "
            "it expires. Null if it is set as a cookie.",
            "eyJ0eXAiOiJzZXNzaW9uK2p3dCJ9.eyJzdWIiOiJ1c2VyIn0.c2lnbmF0dXJl",
        ),
    ]


class LogoutResponse(Wire):
    """The session has ended."""

    logged_out: Annotated[bool, doc("Always true.", True)]


class Session(Wire):
    """A session that has not ended."""

    id: Annotated[str, doc("The ID of the session, `sess_…`.", examples.SESSION_ID)]
    device: Annotated[
        str | None,
        doc(
            "The program that signed in, from its User-Agent header. Null if it sent none.",
            "Firefox on Windows",
        ),
    ]
    address: Annotated[
        str | None,
        doc(
            "The IP address that signed in; for IPv6, its network. Null if it is not known.",
            "192.0.2.17",
        ),
    ]
    created_at: Annotated[Timestamp, doc("When the user signed in.", examples.SIGNED_UP)]
    last_seen_at: Annotated[
        Timestamp, doc("When the session was last used, to the minute.", examples.CREATED)
    ]
    current: Annotated[bool, doc("Whether this request uses the session.", True)]

    @classmethod
    def of(cls, session: queries.Session, current: UUID | None) -> "Session":
        return cls(
            id=ids.to_wire("sess", session.id),
            device=session.device,
            address=session.address,
            created_at=session.created_at,
            last_seen_at=session.last_seen_at,
            current=session.id == current,
        )


class SessionsResponse(Wire):
    """The sessions of the user."""

    sessions: Annotated[list[Session], doc("The sessions, the one used last first.")]
    total: Total


class Issuer(Wire):
    """An identity provider that this deployment accepts."""

    issuer: Annotated[str, doc("The issuer URL.", "https://accounts.example.com")]
    client_id: Annotated[str, doc("The client ID to sign in with.", "rota")]
    cli_client_id: Annotated[str, doc("The client ID for `rota login`.", "rota")]
    cli_redirect_uri: Annotated[
        str | None,
        doc(
            "Where it waits for the code. Null for any port of 127.0.0.1.",
            None,
            "http://localhost:8400/callback",
        ),
    ]
    name: Annotated[str, doc("The name for a sign-in button.", "Example")]
    authorization_endpoint: Annotated[
        str | None,
        doc(
            "Where a browser starts to sign in. Null if the issuer cannot be reached.",
            "https://accounts.example.com/authorize",
        ),
    ]

    @classmethod
    def of(cls, issuer: IssuerSetting, authorization_endpoint: str | None) -> "Issuer":
        return cls(
            issuer=issuer.issuer,
            client_id=issuer.client_id,
            cli_client_id=issuer.cli[0],
            cli_redirect_uri=issuer.cli_redirect_uri,
            name=issuer.name,
            authorization_endpoint=authorization_endpoint,
        )


class AuthConfigResponse(Wire):
    """How to sign in."""

    variant: Annotated[Variant, doc("The variant of this deployment.")]
    issuers: Annotated[list[Issuer], doc("The identity providers that are accepted.")]
