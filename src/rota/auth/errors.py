"""The errors of authentication and of API keys."""

from rota.auth.caller import Caller, Scope
from rota.platform import ids
from rota.platform.cell import Misdirected
from rota.platform.errors import AuthenticationFailed, Conflict, Forbidden, NotFound, Unavailable


class AuthorizationMalformed(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__("The Authorization header must be: Bearer <API key or session token>.")


class ApiKeyInvalid(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__(
            "The API key is not valid. It is unknown, revoked or expired. Send another key, or "
            "create one with POST /api/keys."
        )


class SessionTokenInvalid(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__(
            "The session token is not valid. It is expired, revoked or not from this service. "
            "Refresh it with POST /api/auth/refresh, or sign in again."
        )


class NotSameOrigin(AuthenticationFailed):
    """A request by cookie, or a sign-in that sets one, that no page of this service has sent."""

    def __init__(self) -> None:
        super().__init__(
            "The session cookie works only for pages of this service. The Origin header of the "
            "request must be the origin of ROTA_PUBLIC_URL, or its Sec-Fetch-Site header must be "
            "same-origin. Programs send the header Authorization: Bearer <API key or token>."
        )


class SessionInvalid(AuthenticationFailed):
    """The session itself has ended, so its tokens cannot be refreshed."""

    def __init__(self) -> None:
        super().__init__(
            "The session has expired or was ended. Sign in again with POST /api/auth/session."
        )


class IdTokenInvalid(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__("The ID token is not valid. Sign in again with your identity provider.")


class IdTokenUsed(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__(
            "This ID token was already used. Sign in again with your identity provider."
        )


class CodeUsed(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__(
            "This authorization code was already used. Sign in again with your identity provider."
        )


class CodeRefused(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__(
            "The identity provider refused the authorization code. It is expired, was already "
            "used, or belongs to another codeVerifier or redirectUri. Sign in again."
        )


class AccessTokenInvalid(AuthenticationFailed):
    def __init__(self, audience: str) -> None:
        super().__init__(
            "The access token is not valid. It must be from an identity provider of this service, "
            f"issued for the audience {audience}, valid for at most 24 hours, and not expired."
        )


class AccessTokenBound(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__(
            "The access token is bound to a key of its client (`cnf`). This service does not check "
            "such proofs, so it refuses the token. Request a plain bearer token."
        )


class AccessTokenUnknownUser(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__(
            "The user of this access token has not signed in yet. Sign in to the dashboard once."
        )


class IdentityNotHere(Misdirected):
    """Another cell has the account of this identity, or none has. Only the router sees it."""

    def __init__(self) -> None:
        super().__init__("This cell has no account for this identity.")


class CodeExchanged(Misdirected):
    """A code works once, so its ID token goes to the router, which finds the cell."""

    def __init__(self, id_token: str) -> None:
        super().__init__(
            "The code was exchanged. The router continues with its ID token.",
            details={"idToken": id_token},
        )


class CellsDiffer(Unavailable):
    """A router that does not know every cell cannot tell that a person is new."""

    def __init__(self) -> None:
        super().__init__(
            "The router and this cell have different cells in ROTA_CELLS, so no accounts are "
            "created. Try again in a minute."
        )


class AccountBeingCreated(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "Another sign-in is creating an account for this identity in another cell. Sign "
            "in again in two minutes."
        )


class CredentialRevoked(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__(
            "The credential was revoked while this request waited. Sign in again, or use another "
            "API key."
        )


class SessionNotForPrograms(Forbidden):
    """The holder of a session can approve, and a program must not."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"Session tokens cannot use {path}, because a session can approve. Use an API key "
            "without the scope tasks:approve, or an access token of your identity provider."
        )


class KeyCanApprove(Forbidden):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"API keys with the scope tasks:approve cannot use {path}. Create a key without it."
        )


class UserDeleted(AuthenticationFailed):
    def __init__(self) -> None:
        super().__init__("The user of this token no longer exists. Sign in again.")


class SessionAccountNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("The account of this session no longer exists. Sign in again.")


class SessionNotFound(NotFound):
    """One message for sessions of other users, for ended ones and for unknown ones."""

    def __init__(self) -> None:
        super().__init__("Session not found. GET /api/auth/sessions lists your sessions.")


class SelectionRefused(Forbidden):
    """The credential is valid, but X-Service-Account selects no account that it can use."""

    def __init__(self, caller: Caller, message: str) -> None:
        super().__init__(message)
        # Without the selection: of a key in its account, and otherwise in the personal account. The
        # request counts toward this account.
        self.caller = caller


class AccountNotSelectable(SelectionRefused):
    """One message for accounts of others and for accounts that do not exist."""

    def __init__(self, caller: Caller) -> None:
        super().__init__(
            caller,
            "You are not a member of the account in X-Service-Account. "
            "GET /api/me lists your accounts.",
        )


class CompanyAmbiguous(SelectionRefused):
    def __init__(self, caller: Caller, companies: int) -> None:
        super().__init__(
            caller,
            f"You belong to several companies ({companies}). Send the ID of one in "
            "X-Service-Account. GET /api/me lists them.",
        )


class KeyOfAnotherAccount(SelectionRefused):
    def __init__(self, caller: Caller) -> None:
        super().__init__(
            caller,
            "This API key does not belong to the account in X-Service-Account. "
            f"It belongs to {ids.to_wire('acct', caller.account_id)}. Remove the header, or send a "
            "key of the account that it names.",
        )


class ScopeMissing(Forbidden):
    def __init__(self, scope: Scope, caller: Caller) -> None:
        kind = "access token" if caller.token else "API key"
        remedy = "Request a token" if caller.token else "Create a key"
        super().__init__(f"This {kind} lacks the scope {scope}. {remedy} that has it.")


class SessionRequired(Forbidden):
    def __init__(self) -> None:
        super().__init__("API keys cannot use this endpoint. Sign in and use a session token.")


class AdminRequired(Forbidden):
    """The role `member` is not enough for this."""

    def __init__(self, action: str) -> None:
        super().__init__(f"Only owners and admins of a company can {action}.")


class OwnerRequired(Forbidden):
    """The role `admin` is not enough for this."""

    def __init__(self) -> None:
        super().__init__(
            "Only owners of a company can export or erase all of its data. Ask an owner."
        )


class ApproverRequired(Forbidden):
    def __init__(self) -> None:
        super().__init__(
            "You are not an approver of this company. An owner or admin can make you one."
        )


class SecondPersonRequired(Forbidden):
    """The policy of the account: nobody approves what they shaped."""

    code = "SECOND_PERSON_REQUIRED"


class PersonalRequired(Forbidden):
    def __init__(self) -> None:
        super().__init__("This is for personal accounts only. Send X-Service-Account: personal.")


class ApiKeyNotFound(NotFound):
    """One message for keys of other accounts and for keys that do not exist."""

    def __init__(self) -> None:
        super().__init__("API key not found. GET /api/keys lists the keys.")


class TooManyKeys(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(f"An account can have at most {limit} API keys. Delete one first.")


class SigningKeyMissing(Unavailable):
    def __init__(self) -> None:
        super().__init__("No signing key for session tokens. Run: rota admin signing-keys rotate")


class IssuerUnavailable(Unavailable):
    def __init__(self, issuer: str) -> None:
        super().__init__(f"The identity provider {issuer} is not available. Try again in a moment.")


class CodeNotExchanged(Unavailable):
    """The identity provider failed after it got the code, which works only once."""

    def __init__(self, issuer: str) -> None:
        super().__init__(
            f"The identity provider {issuer} did not return an ID token for the code. Sign in "
            "again in a moment."
        )


class ClientRefused(Unavailable):
    def __init__(self, issuer: str) -> None:
        super().__init__(
            f"The identity provider {issuer} does not accept the client ID or client secret of "
            "this service. The operator must correct ROTA_OIDC_ISSUERS."
        )
