"""Options of TLS: what is taken, what is refused, and that secrets are told to nobody."""

import pytest

from odradek.broker.config.alterations import Alteration, alter_broker
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.option import ConfigError, ConfigType, rows
from odradek.broker.config.tls_options import TlsOptions
from odradek.protocol.configs import Operation

SECRETS = {
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
}
RELOADED = SECRETS | {
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.truststore.location",
    "ssl.truststore.type",
}
"""SslConfigs.RECONFIGURABLE_CONFIGS."""


def test_secrets_are_passwords_and_shown_to_nobody() -> None:
    assert {name for name, row in rows(TlsOptions).items() if row.kind is ConfigType.PASSWORD} == SECRETS
    config = BrokerConfig(dict.fromkeys(SECRETS, "hunter2"))
    described = [entry for entry in config.describe_broker() if entry.name in SECRETS]
    assert len(described) == len(SECRETS)
    assert "hunter2" not in str(described)
    with pytest.raises(ConfigError) as caught:
        BrokerConfig({"ssl.key.password": "hunter2", "ssl.client.auth": "perhaps"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("ssl.client.auth", "required", "required"),
        ("ssl.enabled.protocols", "TLSv1.3", ("TLSv1.3",)),
        ("ssl.enabled.protocols", "TLSv1.3, TLSv1.2", ("TLSv1.3", "TLSv1.2")),
        ("ssl.cipher.suites", "", ()),
        ("ssl.endpoint.identification.algorithm", "", ""),
        ("ssl.endpoint.identification.algorithm", "HTTPS", "HTTPS"),
    ],
)
def test_what_is_taken(name: str, text: str, value: object) -> None:
    assert BROKER_OPTIONS[name].parse(text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ssl.client.auth", "REQUIRED"),
        ("ssl.enabled.protocols", "TLSv1.1,TLSv1.2"),
        ("ssl.enabled.protocols", "SSLv3"),
        ("ssl.endpoint.identification.algorithm", "ldaps"),
        ("connection.authentication.timeout.ms", "99"),
        ("max.unauthenticated.connections", "0"),
        ("max.unauthenticated.connections.per.ip", "0"),
    ],
)
def test_what_is_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BROKER_OPTIONS[name].parse(text)


@pytest.mark.parametrize("name", sorted(RELOADED))
def test_certificates_change_at_run_time_for_one_listener_alone(name: str) -> None:
    change = [Alteration(name, Operation.SET, "x")]
    with pytest.raises(ConfigError, match="only per-listener using the listener prefix"):
        alter_broker({}, change, per_broker=True)


@pytest.mark.parametrize("name", ["ssl.principal.mapping.rules", "ssl.allow.dn.changes", "ssl.allow.san.changes"])
def test_what_does_not_change_at_run_time(name: str) -> None:
    with pytest.raises(ConfigError, match="Cannot update these configs dynamically"):
        alter_broker({}, [Alteration(name, Operation.SET, "true")], per_broker=True)
