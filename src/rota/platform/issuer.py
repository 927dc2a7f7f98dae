"""The setting of an identity provider."""

import re
from typing import Annotated, Self

from pydantic import ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic.alias_generators import to_camel

from rota.platform.strict import StrictModel

_LOOPBACK_CALLBACK = re.compile(r"http://(?:127\.0\.0\.1|localhost):([1-9][0-9]{1,4})/callback")


def is_loopback_callback(uri: str) -> bool:
    """Whether a program on the user's machine can wait there for the answer of an identity
    provider (RFC 8252)."""
    found = _LOOPBACK_CALLBACK.fullmatch(uri)
    return found is not None and int(found[1]) <= 65_535


class Issuer(StrictModel):
    """An identity provider whose ID tokens are accepted."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    issuer: str
    client_id: str
    # For issuers that require one to exchange a code, such as Google.
    client_secret: SecretStr | None = None
    name: str = "Sign in"
    # Whether an address counts as verified if the issuer does not say whether it is.
    trust_email: bool = False
    # The client of `rota login`, if it is not the same one.
    cli_client_id: Annotated[str, Field(min_length=1)] | None = None
    cli_client_secret: SecretStr | None = None
    # Where `rota login` waits, for issuers that compare the port: http://localhost:8400/callback
    cli_redirect_uri: str | None = None

    @field_validator("cli_redirect_uri")
    @classmethod
    def _is_loopback(cls, value: str | None) -> str | None:
        if value is not None and not is_loopback_callback(value):
            raise ValueError("must be like http://localhost:8400/callback, or with 127.0.0.1")
        return value

    @model_validator(mode="after")
    def _has_client_of_secret(self) -> Self:
        if self.cli_client_secret is not None and self.cli_client_id is None:
            raise ValueError("cliClientSecret needs cliClientId")
        return self

    @property
    def cli(self) -> tuple[str, SecretStr | None]:
        """The ID and the secret of the client that the command line uses."""
        if self.cli_client_id is None:
            return self.client_id, self.client_secret
        return self.cli_client_id, self.cli_client_secret
