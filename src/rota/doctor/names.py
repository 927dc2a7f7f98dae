"""Whether every host in the settings has an address."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

from rota.doctor.finding import Finding, failed, ok
from rota.platform.settings import Settings


async def check(settings: Settings) -> AsyncIterator[Finding]:
    found = dict(_hosts(settings))
    loop = asyncio.get_running_loop()
    missing = False
    for host, variable in found.items():
        try:
            await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            missing = True
            yield failed(
                "dns",
                f"The host {host} has no address ({error.strerror or error}). Correct it in "
                f"{variable}, or add it to your DNS.",
            )
    if not missing:
        yield ok("dns", f"{len(found)} {'host has' if len(found) == 1 else 'hosts have'} addresses")


def _hosts(settings: Settings) -> Iterator[tuple[str, str]]:
    """Each host, and the setting that has it."""
    urls = {
        "ROTA_DATABASE_URL": settings.database_url.get_secret_value(),
        "ROTA_REDIS_URL": settings.redis_url.get_secret_value(),
        "ROTA_TEMPORAL_ADDRESS": f"temporal://{settings.temporal_address}",
        "ROTA_OTLP_ENDPOINT": settings.otlp_endpoint,
        "ROTA_STRIPE_API_URL": settings.stripe_api_url,
        "ROTA_PUBLIC_URL": settings.public_url,
        "ROTA_SMTP_HOST": f"smtp://{settings.smtp_host}" if settings.smtp_host else None,
    }
    if settings.migration_database_url:
        urls["ROTA_MIGRATION_DATABASE_URL"] = settings.migration_database_url.get_secret_value()
    for variable, url in urls.items():
        yield from ((host, variable) for host in _hosts_of(url))
    for issuer in settings.oidc_issuers:
        yield from ((host, "ROTA_OIDC_ISSUERS") for host in _hosts_of(issuer.issuer))
    for choice in settings.models.values():
        for each in (choice, *choice.fallbacks):
            yield from ((host, "ROTA_MODELS") for host in _hosts_of(each.base_url))


def _hosts_of(url: str | None) -> Iterator[str]:
    """A PostgreSQL URL can have several hosts. A URL of a socket has none."""
    if url is None:
        return
    try:
        netloc = urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return
    for part in filter(None, netloc.split(",")):
        host = part[1:].partition("]")[0] if part.startswith("[") else part.partition(":")[0]
        if host and "%" not in host:
            yield host
