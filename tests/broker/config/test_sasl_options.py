"""The rows of SASL: what is refused at once, and which of them one listener or mechanism may have for itself."""

import pytest

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.option import ConfigError, ConfigType
from odradek.broker.config.sasl_options import JWT_VALIDATORS, MECHANISMS, SaslOptions


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sasl.enabled.mechanisms", "PLAIN,DIGEST-MD5"),
        ("sasl.enabled.mechanisms", "plain"),
        ("sasl.mechanism.inter.broker.protocol", "scram"),
        ("sasl.oauthbearer.jwks.endpoint.url", "http://idp/keys"),
        ("sasl.oauthbearer.jwks.endpoint.url", "HTTPS://idp"),
        ("sasl.oauthbearer.token.endpoint.url", "http://idp/token"),
        ("principal.builder.class", "com.example.Builder"),
        ("sasl.server.callback.handler.class", "com.example.Handler"),
        ("sasl.server.max.receive.size", "0"),
        ("connection.failed.authentication.delay.ms", "-1"),
    ],
)
def test_what_is_refused(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BROKER_OPTIONS[name].parse(text)


def test_what_is_taken() -> None:
    assert SaslOptions.sasl_enabled_mechanisms.parse(",".join(MECHANISMS)) == MECHANISMS
    for url in ("https://idp.example/keys?a=b", "file:/etc/keys", "file:///etc/keys"):
        assert SaslOptions.sasl_oauthbearer_jwks_endpoint_url.parse(url) == url
    for name in JWT_VALIDATORS:
        assert SaslOptions.sasl_server_callback_handler_class.parse(name) == name


def test_a_login_module_is_a_secret() -> None:
    row = SaslOptions.sasl_jaas_config
    assert row.kind is ConfigType.PASSWORD
    assert row.is_sensitive
    assert row.mechanism_alone


def test_what_a_mechanism_may_have_for_itself() -> None:
    per_mechanism = {row.name for row in BROKER_OPTIONS.values() if row.per_mechanism and "sasl" in row.name}
    assert {name for name in per_mechanism if not name.startswith("sasl.oauthbearer.")} == {
        "sasl.jaas.config",
        "sasl.plain.password.file",
        "sasl.server.callback.handler.class",
    }
    assert SaslOptions.connections_max_reauth_ms.per_mechanism
    assert not SaslOptions.sasl_mechanism_inter_broker_protocol.per_listener
