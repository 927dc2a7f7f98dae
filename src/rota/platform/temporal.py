"""The connection to Temporal, opened on first use."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client, TLSConfig
from temporalio.converter import DataConverter
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError, RPCStatusCode

from rota.platform.settings import Settings
from rota.platform.start_checks import StartRefused
from rota.platform.temporal_codec import encrypting_converter


def forward_logs() -> None:
    """Sends the logs of Temporal's library through the logs of the process. By default it prints
    coloured text. Call it before the first connection."""
    forwarding = LogForwardingConfig(
        logging.getLogger("temporalio"),
        append_target_to_name=False,
        prepend_target_on_message=False,
    )
    levels = TelemetryFilter(core_level="WARN", other_level="ERROR")
    logs = LoggingConfig(filter=levels, forwarding=forwarding)
    Runtime.set_default(
        Runtime(telemetry=TelemetryConfig(logging=logs)), error_if_already_set=False
    )


@dataclass(frozen=True, slots=True)
class Tls:
    """Files in PEM format. Without `ca`, the system's authorities are trusted."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    # The name in the certificate of the server, if it is not the host that is called.
    server_name: str | None = None

    def read(self) -> TLSConfig:
        ca, cert, key = (file.read_bytes() if file else None for file in self._files)
        return TLSConfig(
            server_root_ca_cert=ca,
            domain=self.server_name,
            client_cert=cert,
            client_private_key=key,
        )

    def versions(self) -> tuple[int, ...]:
        """Changes when one of the files does."""
        return tuple(file.stat().st_mtime_ns for file in self._files if file)

    @property
    def _files(self) -> tuple[Path | None, ...]:
        return self.ca, self.cert, self.key


class Temporal:
    """Connects lazily, so that the service starts and works while Temporal is down."""

    def __init__(
        self,
        address: str,
        namespace: str,
        *,
        tls: Tls | None = None,
        api_key: str | None = None,
        codec_keys: Sequence[bytes | None] = (),
    ) -> None:
        self._address = address
        self._namespace = namespace
        self._tls = tls
        self._api_key = api_key
        self._converter: DataConverter = encrypting_converter(codec_keys)
        self._client: Client | None = None
        self._versions: tuple[int, ...] = ()

    async def client(self) -> Client:
        """A new one after a certificate was renewed."""
        if self._client is None or self._file_versions() != self._versions:
            return await self._connect(lazy=True)
        return self._client

    async def connect(self) -> Client:
        """A connected client, as a worker needs it. Fails while Temporal is down.

        Later calls use it too, until a certificate is renewed: only through its own client can a
        worker get the first workflow task of a run that it starts.
        """
        return await self._connect(lazy=False)

    async def check_namespace(self) -> None:
        """Fails while Temporal is down. Refuses a namespace that does not exist, and a credential
        that Temporal does not accept."""
        service = (await self.client()).workflow_service
        try:
            await service.describe_namespace(DescribeNamespaceRequest(namespace=self._namespace))
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                raise StartRefused(
                    f"Temporal has no namespace {self._namespace!r}. Correct "
                    "ROTA_TEMPORAL_NAMESPACE, or create it: temporal operator namespace create "
                    f"--namespace {self._namespace} --retention 3d"
                ) from error
            if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED):
                raise StartRefused(
                    f"Temporal refuses the credential ({error.message}). Correct "
                    "ROTA_TEMPORAL_API_KEY, or the client certificate in "
                    "ROTA_TEMPORAL_TLS_CERT_FILE."
                ) from error
            raise

    async def ping(self) -> None:
        if not await (await self.client()).service_client.check_health():
            raise ConnectionError("Temporal is not serving")

    async def _connect(self, *, lazy: bool) -> Client:
        versions = self._file_versions()
        client = await Client.connect(self._address, **self._options(), lazy=lazy)
        self._client, self._versions = client, versions
        return client

    def _file_versions(self) -> tuple[int, ...]:
        return self._tls.versions() if self._tls else ()

    def _options(self) -> dict[str, Any]:
        return {
            "namespace": self._namespace,
            "tls": self._tls.read() if self._tls else False,
            "api_key": self._api_key,
            "data_converter": self._converter,
        }


def temporal_of(settings: Settings) -> Temporal:
    tls = Tls(
        settings.temporal_tls_ca_file,
        settings.temporal_tls_cert_file,
        settings.temporal_tls_key_file,
        settings.temporal_tls_server_name,
    )
    api_key = settings.temporal_api_key
    return Temporal(
        settings.temporal_address,
        settings.temporal_namespace,
        tls=tls if settings.uses_temporal_tls else None,
        api_key=api_key.get_secret_value() if api_key else None,
        codec_keys=settings.temporal_codec_keys,
    )
