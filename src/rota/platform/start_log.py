"""What a process logs about its configuration when it starts. Never a secret."""

import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import structlog
from pydantic import SecretStr

from rota.platform.schema_version import needed
from rota.platform.settings import PREFIX, Settings, unknown_variables
from rota.platform.start_checks import is_unclear

log = structlog.get_logger()

# They are shown in other fields, or contain secrets.
_LEFT_OUT = frozenset(("env", "variant", "models", "oidc_issuers", "temporal_address"))


def log_start(settings: Settings, process: str) -> None:
    log.info(
        "starting",
        process=process,
        version=version("rota"),
        python=sys.version.partition(" ")[0],
        schema=needed(),
        env=settings.env,
        variant=settings.variant,
        database=place(settings.database_url.get_secret_value()),
        redis=place(settings.redis_url.get_secret_value()),
        temporal=f"{settings.temporal_address}/{settings.temporal_namespace}",
        temporal_tls=settings.uses_temporal_tls,
        issuers=[issuer.issuer for issuer in settings.oidc_issuers],
        models=sorted(settings.models) or ([place(settings.model_url)] * bool(settings.model_url)),
        payments="stripe" if settings.stripe_secret_key else "off",
        settings=list(_changed(settings)),
    )
    for name, nearest in unknown_variables().items():
        log.warning("unknown_setting", name=name, did_you_mean=nearest)


def place(url: str | None) -> str:
    """Where a URL points to, without a login, a path that could be secret, or options."""
    if url is None:
        return ""
    if is_unclear(url):
        # A part of the password would be shown as the host or the path.
        return "unclear: escape special characters of the password"
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2]
    keeps_path = parts.scheme in ("postgresql", "postgres", "redis", "rediss")
    return hosts + (parts.path if keeps_path else "")


def _changed(settings: Settings) -> Iterator[str]:
    """The settings that differ from their defaults. Of a secret, only that it is set."""
    for name, field in Settings.model_fields.items():
        value: Any = getattr(settings, name)
        if name in _LEFT_OUT or value == field.default:
            continue
        yield f"{PREFIX}{name.upper()}={_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "(set)"
    if isinstance(value, tuple):
        return ",".join(map(_shown, value))
    text = str(value)
    return place(text) if "://" in text else text
