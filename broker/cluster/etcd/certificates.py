"""The files with which a broker and etcd prove to each other who they are. Read once, at the start.

gRPC takes their content, and says little about what is wrong with it, and that late. So it is tried here before.
"""

import ssl
from typing import NamedTuple

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.broker_options import BrokerOptions
from odradek.broker.config.option import ConfigError
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.open_files import warn_of_open_file
from odradek.runtime.environment import Environment


class Certificates(NamedTuple):
    """PEM: who signed the members' certificates, and our own with its key, if etcd asks for one."""

    authority: bytes
    certificate: bytes | None = None
    key: bytes | None = None


async def load_certificates(environment: Environment, config: BrokerConfig, disk: Disk) -> Certificates | None:
    """None where no authority is named: then etcd is spoken to without TLS. Raises ConfigError, OSError."""
    authority, certificate, key = (
        config.metadata_etcd_ca_location,
        config.metadata_etcd_certificate_location,
        config.metadata_etcd_key_location,
    )
    if bool(certificate) != bool(key) or (certificate and not authority):
        raise ConfigError(
            f"{BrokerOptions.metadata_etcd_certificate_location.name} and "
            f"{BrokerOptions.metadata_etcd_key_location.name} come together, and with "
            f"{BrokerOptions.metadata_etcd_ca_location.name}."
        )
    if not authority:
        return None
    return await environment.run_blocking(_load, disk, authority, certificate, key)


def _load(disk: Disk, authority: str, certificate: str | None, key: str | None) -> Certificates:
    files = Certificates(disk.read_whole(authority))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError as error:
        name = BrokerOptions.metadata_etcd_ca_location.name
        raise ConfigError(f"{name}: {authority} holds no certificates as PEM ({error.reason or error}).") from None
    if certificate is None or key is None:
        return files
    files = Certificates(files.authority, disk.read_whole(certificate), disk.read_whole(key))
    try:
        context.load_cert_chain(certificate, key, password="")  # without one it would be asked for at the terminal
    except ssl.SSLError as error:
        raise ConfigError(
            f"{BrokerOptions.metadata_etcd_certificate_location.name}: {certificate} and {key} are no certificate and "
            f"its key, both as PEM and the key not encrypted ({error.reason or error})."
        ) from None
    warn_of_open_file(key)
    return files
