"""Files for TLS: those that cannot be used are named before anything is sent, and those that can are handed on."""

from pathlib import Path

import pytest

from odradek.broker.cluster.etcd.certificates import Certificates, load_certificates
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ConfigError
from odradek.broker.disk.file_disk import FileDisk
from odradek.runtime.environment import Environment
from tests.client import certificates as made

CA, CERTIFICATE, KEY = (f"metadata.etcd.{what}.location" for what in ("ca", "certificate", "key"))


async def load(options: dict[str, Path]) -> Certificates | None:
    config = BrokerConfig({name: str(path) for name, path in options.items()})
    return await load_certificates(Environment(), config, FileDisk())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> made.Certificates:
    return made.make_certificates(tmp_path_factory.mktemp("certificates"))


async def test_what_is_named_is_read(files: made.Certificates) -> None:
    authority, client = files.authority.read_bytes(), files.client.read_bytes()
    assert await load({}) is None
    assert await load({CA: files.authority}) == Certificates(authority)
    assert await load({CA: files.authority, CERTIFICATE: files.client, KEY: files.client}) == Certificates(
        authority, client, client
    )


async def test_certificate_and_key_come_together_and_with_an_authority(files: made.Certificates) -> None:
    for options in (
        {CERTIFICATE: files.client},
        {KEY: files.client, CA: files.authority},
        {CERTIFICATE: files.client, KEY: files.client},
    ):
        with pytest.raises(ConfigError, match=f"^{CERTIFICATE} and {KEY} come together, and with {CA}.$"):
            await load(options)


async def test_a_file_that_is_not_there_is_named(files: made.Certificates, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(FileNotFoundError, match=str(missing)):
        await load({CA: missing})
    with pytest.raises(FileNotFoundError, match=str(missing)):
        await load({CA: files.authority, CERTIFICATE: files.client, KEY: missing})


async def test_a_file_of_another_kind_is_named(files: made.Certificates, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(b"\xff\x00 no PEM")
    for wrong in (other, files.authority.with_suffix(".key")):
        with pytest.raises(ConfigError, match=f"{CA}: {wrong} holds no certificates as PEM"):
            await load({CA: wrong})
    for certificate, key in ((other, files.client), (files.client, other), (files.client, files.server)):
        with pytest.raises(ConfigError, match=f"{CERTIFICATE}: {certificate} and {key} are no certificate and its key"):
            await load({CA: files.authority, CERTIFICATE: certificate, KEY: key})


async def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_a_password(files: made.Certificates) -> None:
    with pytest.raises(ConfigError, match="the key not encrypted"):
        await load({CA: files.authority, CERTIFICATE: files.encrypted, KEY: files.encrypted})


async def test_a_key_that_others_may_read_is_warned_of(
    files: made.Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(files.client.read_bytes())
    for mode in (0o600, 0o640):
        key.chmod(mode)
        await load({CA: files.authority, CERTIFICATE: files.client, KEY: key})
    assert caplog.messages == [
        f"{key} holds secrets and has mode 0640, so its group may read it: chmod 600 {key}",
    ]
