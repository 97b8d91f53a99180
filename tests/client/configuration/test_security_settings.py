"""Shows which settings of TLS and SASL go together; those that contradict one another are named, and no secret."""

import ssl
from typing import Any

import pytest

from odradek.client.admin.config import AdminConfig
from odradek.client.configuration.settings import rows
from odradek.client.errors.client_errors import ConfigError
from odradek.client.fetching.config import FetchConfig
from odradek.client.producer.config import ProducerConfig

CONTEXT = ssl.create_default_context()


async def token() -> str:
    return "token"


SASL: dict[str, Any] = {"security_protocol": "SASL_SSL"}
PLAIN: dict[str, Any] = SASL | {"sasl_mechanism": "PLAIN", "sasl_username": "me", "sasl_password": "secret"}
TLS: dict[str, Any] = {"security_protocol": "SSL"}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="secret";'


@pytest.mark.parametrize(
    "settings",
    [
        {},
        TLS,
        TLS | {"ssl_context": CONTEXT},
        TLS | {"ssl_truststore_location": "/ca.pem", "ssl_endpoint_identification_algorithm": ""},
        TLS | {"ssl_keystore_location": "/me.pem", "ssl_key_password": "secret"},
        TLS | {"ssl_keystore_key": "-----", "ssl_keystore_certificate_chain": "-----", "ssl_key_password": "secret"},
        PLAIN,
        PLAIN | {"security_protocol": "SASL_PLAINTEXT"},
        PLAIN | {"sasl_mechanism": "scram-sha-256", "ssl_context": CONTEXT},
        SASL | {"sasl_mechanism": "PLAIN", "sasl_jaas_config": JAAS},
        SASL | {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_provider": token},
    ],
)
def test_security_settings_that_go_together(settings: dict[str, Any]) -> None:
    config = ProducerConfig("localhost:9092", **settings)
    protocol = config.security_protocol
    assert config.uses_tls is protocol.endswith("SSL")
    assert config.uses_sasl is protocol.startswith("SASL")
    has_password = config.sasl_mechanism not in (None, "OAUTHBEARER")
    assert config.sasl_credentials == (("me", "secret") if has_password else None)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"ssl_context": CONTEXT}, {"ssl_context", "security_protocol"}),
        ({"ssl_truststore_location": "/ca.pem"}, {"ssl_truststore_location", "security_protocol"}),
        ({"security_protocol": "SASL_PLAINTEXT", "ssl_context": CONTEXT}, {"ssl_context", "security_protocol"}),
        (TLS | {"ssl_context": CONTEXT, "ssl_key_password": "secret"}, {"ssl_context", "ssl_key_password"}),
        (
            TLS | {"ssl_context": CONTEXT, "ssl_endpoint_identification_algorithm": ""},
            {"ssl_context", "ssl_endpoint_identification_algorithm"},
        ),
        (
            TLS | {"ssl_truststore_location": "/a", "ssl_truststore_certificates": "-"},
            {"ssl_truststore_location", "ssl_truststore_certificates"},
        ),
        (
            TLS | {"ssl_keystore_location": "/a", "ssl_keystore_key": "secret"},
            {"ssl_keystore_location", "ssl_keystore_key"},
        ),
        (
            TLS | {"ssl_keystore_location": "/a", "ssl_keystore_certificate_chain": "-"},
            {"ssl_keystore_location", "ssl_keystore_certificate_chain"},
        ),
        (TLS | {"ssl_keystore_key": "secret"}, {"ssl_keystore_key", "ssl_keystore_certificate_chain"}),
        (TLS | {"ssl_keystore_certificate_chain": "-"}, {"ssl_keystore_key", "ssl_keystore_certificate_chain"}),
        (TLS | {"ssl_key_password": "secret"}, {"ssl_key_password", "ssl_keystore_location", "ssl_keystore_key"}),
        ({"sasl_password": "secret"}, {"sasl_password", "security_protocol"}),
        (TLS | {"sasl_mechanism": "PLAIN"}, {"sasl_mechanism", "security_protocol"}),
        (SASL, {"security_protocol", "sasl_mechanism"}),
        (SASL | {"sasl_mechanism": "PLAIN", "sasl_username": "me"}, {"sasl_mechanism", "sasl_password"}),
        (SASL | {"sasl_mechanism": "SCRAM-SHA-512"}, {"sasl_mechanism", "sasl_username", "sasl_password"}),
        (PLAIN | {"sasl_jaas_config": JAAS}, {"sasl_jaas_config", "sasl_username"}),
        (
            SASL | {"sasl_mechanism": "SCRAM-SHA-256", "sasl_jaas_config": JAAS},
            {"sasl_mechanism", "sasl_jaas_config"},
        ),
        (SASL | {"sasl_mechanism": "PLAIN", "sasl_jaas_config": JAAS[:-1]}, {"sasl_jaas_config"}),
        (
            SASL | {"sasl_mechanism": "PLAIN", "sasl_jaas_config": 'x.KeyTab required username="secret";'},
            {"sasl_jaas_config"},
        ),
        (PLAIN | {"sasl_oauthbearer_token_provider": token}, {"sasl_mechanism", "sasl_oauthbearer_token_provider"}),
        (SASL | {"sasl_mechanism": "OAUTHBEARER"}, {"sasl_mechanism", "sasl_oauthbearer_token_provider"}),
        (
            PLAIN | {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_provider": token},
            {"sasl_mechanism", "sasl_username", "sasl_password"},
        ),
    ],
)
def test_security_settings_that_contradict_one_another(settings: dict[str, Any], named: set[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        ProducerConfig("localhost:9092", **settings)
    assert set(caught.value.settings) == named
    assert caught.value.hint
    assert all(name in str(caught.value) for name in named)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name, row in rows(ProducerConfig).items() if row.is_secret])
def test_a_secret_of_a_wrong_type_is_not_shown(name: str) -> None:
    wrong: dict[str, Any] = {name: b"geheim"}
    with pytest.raises(ConfigError) as caught:
        ProducerConfig("localhost:9092", **wrong)
    assert "geheim" not in str(caught.value)
    assert "bytes [hidden]" in str(caught.value)


def test_a_token_in_place_of_its_provider_is_not_shown() -> None:
    """It is a likely mistake: the token itself is pasted, as a text of a property file or of a program."""
    settings = {"bootstrap.servers": "localhost:9092", "sasl_oauthbearer_token_provider": "geheim"}
    for kind in (ProducerConfig, AdminConfig, FetchConfig):
        with pytest.raises(ConfigError, match=r"sasl_oauthbearer_token_provider is a text \[hidden\], where") as caught:
            kind.from_dict(settings)
        assert "geheim" not in str(caught.value)
    wrong: dict[str, Any] = {"sasl_oauthbearer_token_provider": "geheim"}
    with pytest.raises(ConfigError, match="must be a coroutine function") as caught:
        ProducerConfig("localhost:9092", **wrong)
    assert "geheim" not in str(caught.value)


def test_what_is_secret() -> None:
    secret = {name for name, row in rows(ProducerConfig).items() if row.is_secret}
    assert secret == {
        "sasl_password",
        "sasl_jaas_config",
        "sasl_oauthbearer_token_provider",
        "ssl_key_password",
        "ssl_keystore_key",
    }
