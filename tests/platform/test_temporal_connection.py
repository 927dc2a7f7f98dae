"""Payloads in Temporal are encrypted on request, and certificates are read again."""

import base64
from pathlib import Path

import pytest
from pydantic import SecretStr
from temporalio.api.common.v1 import Payload

from rota.dev.stack import Stack
from rota.platform.settings import Settings
from rota.platform.temporal import Temporal, Tls
from rota.platform.temporal_codec import EncryptingCodec, UnreadablePayload, encrypting_converter
from tests.e2e.production_parts import Authority, tls_proxy

FIRST, SECOND = b"1" * 32, b"2" * 32
PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"hush"')


async def test_a_payload_is_encrypted_and_names_its_key() -> None:
    codec = EncryptingCodec((FIRST,))
    (sealed,) = await codec.encode([PLAIN])
    assert b"hush" not in sealed.SerializeToString()
    assert sealed.metadata["encoding"] == b"binary/encrypted"
    assert await codec.decode([sealed]) == [PLAIN]
    (again,) = await codec.encode([PLAIN])
    assert again.data != sealed.data
    assert again.metadata["encryption-key-id"] == sealed.metadata["encryption-key-id"]


async def test_a_key_can_be_replaced_and_encryption_turned_on_and_off() -> None:
    sealed = await EncryptingCodec((FIRST,)).encode([PLAIN])
    assert await EncryptingCodec((SECOND, FIRST)).decode([*sealed, PLAIN]) == [PLAIN, PLAIN]
    off = EncryptingCodec((None, FIRST))
    assert await off.decode(sealed) == [PLAIN]
    assert await off.encode([PLAIN]) == [PLAIN]
    with pytest.raises(UnreadablePayload, match="ROTA_TEMPORAL_CODEC_KEYS_OLD"):
        await EncryptingCodec((SECOND,)).decode(sealed)


async def test_a_changed_payload_is_refused() -> None:
    codec = EncryptingCodec((FIRST,))
    (sealed,) = await codec.encode([PLAIN])
    sealed.data = sealed.data[:-1] + bytes([sealed.data[-1] ^ 1])
    with pytest.raises(UnreadablePayload, match="was changed"):
        await codec.decode([sealed])


def test_the_converter_is_temporals_own_without_keys() -> None:
    assert encrypting_converter(()).payload_codec is None
    assert encrypting_converter((None,)).payload_codec is None
    assert encrypting_converter((FIRST,)).payload_codec is not None


def test_codec_keys_come_from_the_settings() -> None:
    key, old = (SecretStr(base64.b64encode(each).decode()) for each in (FIRST, SECOND))
    settings = Settings(temporal_codec_key=key, temporal_codec_keys_old=(old,))
    assert settings.temporal_codec_keys == (FIRST, SECOND)
    assert Settings().temporal_codec_keys == (None,)


async def test_a_renewed_client_certificate_is_used(stack: Stack, tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), tmp_path / "stranger"
    stranger.mkdir()
    server = authority.certificate("temporal.test")
    client = Authority(stranger).certificate("rota")
    grpc = authority.server_context(server, clients=True)
    grpc.set_alpn_protocols(["h2"])
    port = int(stack.endpoints.temporal_address.rpartition(":")[2])
    async with tls_proxy(port, grpc) as address:
        tls = Tls(authority.file, client.cert, client.key, "temporal.test")
        temporal = Temporal(f"127.0.0.1:{address}", "default", tls=tls)
        with pytest.raises(Exception, match=r"(?i)connect|transport|tls"):
            await temporal.ping()
        renewed = authority.certificate("rota")
        for old, new in ((client.cert, renewed.cert), (client.key, renewed.key)):
            old.write_bytes(new.read_bytes())
        await temporal.ping()
        assert await temporal.client() is await temporal.client()
