"""What stands between Rota and its servers in production: PgBouncer, certificates and TLS."""

import asyncio
import contextlib
import ipaddress
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rota.dev.postgres import unprivileged
from tests.service import free_port, listens

Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Certificate:
    cert: Path
    key: Path


class Authority:
    """A certificate authority with its files in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Rota tests")])
        self.file = folder / "authority.pem"
        builder = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.file.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def certificate(self, name: str) -> Certificate:
        """For this host name, and for the local machine."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [
            *(x509.DNSName(each) for each in (name, "localhost")),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, key).add_extension(
            x509.SubjectAlternativeName(names), critical=False
        )
        made = Certificate(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        made.cert.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        made.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return made

    def _builder(self, subject: x509.Name, key: Key) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
        )

    def server_context(self, server: Certificate, *, clients: bool = False) -> ssl.SSLContext:
        """`clients`: refuse clients without a certificate of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server.cert, server.key)
        if clients:
            context.load_verify_locations(self.file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


@asynccontextmanager
async def tls_proxy(port: int, context: ssl.SSLContext) -> AsyncIterator[int]:
    """Ends TLS in front of a local server. Yields its own port."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def pgbouncer(
    folder: Path,
    postgres_port: int,
    passwords: Mapping[str, str],
    server: Certificate,
    *,
    pool_size: int = 4,
    clients: int = 200,
) -> AsyncIterator[int]:
    """PgBouncer in transaction mode, which accepts TLS only. Yields its port."""
    port = free_port()
    users, config = folder / "users.txt", folder / "pgbouncer.ini"
    users.write_text("".join(f'"{user}" "{word}"\n' for user, word in passwords.items()))
    config.write_text(
        f"""
[databases]
* = host=127.0.0.1 port={postgres_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = {clients}
client_tls_sslmode = require
client_tls_cert_file = {server.cert}
client_tls_key_file = {server.key}
"""
    )
    with (folder / "pgbouncer.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *unprivileged(), "/usr/sbin/pgbouncer", str(config), stdout=log, stderr=log
        )
    try:
        async with asyncio.timeout(20):
            while not await listens(port):
                assert process.returncode is None, (folder / "pgbouncer.log").read_text()
                await asyncio.sleep(0.05)
        yield port
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def create_logins(
    admin_url: str, database: str, owner: str, words: Mapping[str, str]
) -> None:
    """A database of `owner`, and logins that have no rights of their own."""
    admin = await asyncpg.connect(admin_url)
    await admin.execute(f"CREATE DATABASE {database} OWNER {owner}")
    for login, password in words.items():
        await admin.execute(f"CREATE ROLE {login} LOGIN NOINHERIT PASSWORD '{password}'")
    await admin.close()
