"""What a process refuses to start with."""

import os
import re
from collections.abc import Iterator
from email.utils import parseaddr
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from rota.platform.settings import Settings

# The values of sslmode with which a PostgreSQL connection is always encrypted.
_ENCRYPTED = ("require", "verify-ca", "verify-full")
_OTHERWISE = ", or set ROTA_ALLOW_PLAINTEXT=true if the network is private"
_REDIS_SCHEMES = ("redis://", "rediss://", "unix://")
_ADDRESS = re.compile(r"[!-?A-~]+@[0-9A-Za-z.-]+")
_HOST_AND_PORT = re.compile(r"[^\s/]+:[0-9]{1,5}")


class StartRefused(Exception):
    """The process must not start like this. The message says what to change."""


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


_SEVERAL_HOSTS = ". Of several hosts, only the first can be an IPv6 address"


def is_unclear(url: str) -> bool:
    """Whether it cannot be said where the password of a URL ends and the host begins, because a
    character of the password should be escaped, or what the hosts are."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    hosts = parts.netloc.rpartition("@")[2]
    return "@" in parts.path + parts.query or not all(map(_is_host, hosts.split(",")))


def _is_host(text: str) -> bool:
    port = text.rpartition("]")[2].partition(":")[2] if "]" in text else text.partition(":")[2]
    return port == "" or port.isdecimal()


def general_problems(settings: "Settings") -> Iterator[str]:
    """Every reason why these settings cannot work in any environment."""
    for name in ("database_url", "migration_database_url", "redis_url"):
        url = getattr(settings, name)
        if url is not None and is_unclear(url.get_secret_value()):
            hosts = "" if name == "redis_url" else _SEVERAL_HOSTS
            yield (
                f"ROTA_{name.upper()} cannot be read: percent-encode special characters of the "
                f"password, for example / as %2F{hosts}"
            )
    if not settings.public_url.startswith(("http://", "https://")):
        yield "ROTA_PUBLIC_URL must start with https://, or with http:// in development"
    if not settings.redis_url.get_secret_value().startswith(_REDIS_SCHEMES):
        yield f"ROTA_REDIS_URL must start with one of {', '.join(_REDIS_SCHEMES)}"
    if not _HOST_AND_PORT.fullmatch(settings.temporal_address):
        yield (
            "ROTA_TEMPORAL_ADDRESS must be a host and a port without a scheme, such as "
            "temporal.example.com:7233"
        )
    if (settings.temporal_tls_cert_file is None) != (settings.temporal_tls_key_file is None):
        yield "set both ROTA_TEMPORAL_TLS_CERT_FILE and ROTA_TEMPORAL_TLS_KEY_FILE, or neither"
    for kind, least in settings.retention_min_days.items():
        most = settings.retention_max_days.get(kind)
        if most is not None and least > most:
            yield (
                f"ROTA_RETENTION_MIN_DAYS of {kind} is {least}, which is more than "
                f"ROTA_RETENTION_MAX_DAYS, {most}"
            )
    yield from _mail_problems(settings)


def _mail_problems(settings: "Settings") -> Iterator[str]:
    if settings.smtp_host is None:
        return
    name, address = parseaddr(settings.smtp_from or "")
    if not _ADDRESS.fullmatch(address) or not (name + address).isprintable():
        example = "Rota <rota@example.com>"
        yield f"with ROTA_SMTP_HOST, ROTA_SMTP_FROM must be an address, such as {example}"
    if (settings.smtp_user is None) != (settings.smtp_password is None):
        yield "set both ROTA_SMTP_USER and ROTA_SMTP_PASSWORD, or neither"


def storage_problems(settings: "Settings") -> Iterator[str]:
    """Every reason why the database and its secrets are not safe in production."""
    if settings.has_public_secret_key:
        yield "ROTA_SECRET_KEY must be set in production: openssl rand -base64 32"
    elif not any(settings.secret_key_bytes):
        yield "ROTA_SECRET_KEY must not be all zeros: openssl rand -base64 32"
    for name in ("database_url", "migration_database_url"):
        url = getattr(settings, name)
        if settings.allow_plaintext or url is None:
            continue
        if _is_plaintext_postgres(url.get_secret_value()):
            yield (
                f"ROTA_{name.upper()} must have sslmode=verify-full (or at least "
                f"sslmode=require) in production{_OTHERWISE}"
            )


def production_problems(settings: "Settings") -> Iterator[str]:
    """Every reason why these settings are not safe in production."""
    yield from storage_problems(settings)
    if settings.has_public_audit_key:
        yield "ROTA_AUDIT_KEY must be set in production: openssl rand -base64 32"
    elif settings.audit_key.get_secret_value() == settings.secret_key.get_secret_value():
        yield "ROTA_AUDIT_KEY must not be ROTA_SECRET_KEY: openssl rand -base64 32"
    elif not any(settings.audit_key_bytes):
        yield "ROTA_AUDIT_KEY must not be all zeros: openssl rand -base64 32"
    if not settings.oidc_issuers:
        yield "ROTA_OIDC_ISSUERS must have at least one issuer in production"
    if insecure := [i.issuer for i in settings.oidc_issuers if not i.issuer.startswith("https://")]:
        yield f"ROTA_OIDC_ISSUERS must start with https:// in production: {', '.join(insecure)}"
    if settings.metrics_port is None:
        yield "ROTA_METRICS_PORT must be set in production: /metrics needs no authentication"
    if settings.stripe_secret_key and not settings.stripe_webhook_secrets:
        yield (
            "ROTA_STRIPE_WEBHOOK_SECRETS must be set with ROTA_STRIPE_SECRET_KEY: payments are "
            "recorded only from webhooks"
        )
    if not settings.public_url.startswith("https://"):
        yield "ROTA_PUBLIC_URL must start with https:// in production"
    if settings.smtp_host and settings.smtp_tls == "none" and settings.smtp_password:
        yield "ROTA_SMTP_TLS must be starttls or tls if ROTA_SMTP_PASSWORD is set"
    if not settings.allow_plaintext:
        yield from _plaintext_problems(settings)


def _plaintext_problems(settings: "Settings") -> Iterator[str]:
    redis = urlsplit(settings.redis_url.get_secret_value())
    if redis.scheme == "redis" and not is_loopback(redis.hostname or "localhost"):
        yield f"ROTA_REDIS_URL must start with rediss:// in production{_OTHERWISE}"
    host = settings.temporal_address.rpartition(":")[0]
    if not settings.uses_temporal_tls and not is_loopback(host):
        yield f"ROTA_TEMPORAL_TLS must be true in production{_OTHERWISE}"
    mail_host = settings.smtp_host if settings.smtp_tls == "none" else None
    if mail_host and not settings.smtp_password and not is_loopback(mail_host):
        yield f"ROTA_SMTP_TLS must be starttls or tls in production{_OTHERWISE}"


def _is_plaintext_postgres(url: str) -> bool:
    """Whether a connection can be unencrypted and leave the machine. A URL can have several
    hosts, and a host that begins with / is a Unix socket."""
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if (options.get("sslmode") or os.environ.get("PGSSLMODE")) in _ENCRYPTED:
        return False
    if options.get("service") or os.environ.get("PGSERVICE"):
        return True  # Nobody knows here which host the service file names.
    # The driver's own order. Without any of them, it uses the local machine.
    hosts = parts.netloc.rpartition("@")[2] or options.get("host") or os.environ.get("PGHOST", "")
    names = filter(None, map(_without_port, hosts.split(",")))
    return not all(name.startswith(("/", "%2F", "%2f")) or is_loopback(name) for name in names)


def _without_port(host: str) -> str:
    return host[: host.index("]") + 1] if host.startswith("[") else host.partition(":")[0]
