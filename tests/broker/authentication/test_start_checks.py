"""A start with SASL that could let nobody in is refused, and each mistake is told with what to write."""

import pytest

from odradek.broker.authentication import token_signatures
from odradek.broker.authentication.start_checks import problems
from odradek.broker.config.broker_config import BrokerConfig
from tests.broker.authentication.listeners import OAUTH_MODULE, PLAIN_MODULE

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
JAAS = "listener.name.outside.plain.sasl.jaas.config"
USERS = {JAAS: f'{PLAIN_MODULE} required user_a="secret";'}


def found(options: dict[str, str]) -> list[str]:
    return problems(["OUTSIDE"], BrokerConfig(options))


@pytest.mark.parametrize(
    "options",
    [
        {"sasl.enabled.mechanisms": "PLAIN"} | USERS,
        {"sasl.enabled.mechanisms": "PLAIN", "sasl.plain.password.file": "/users"},
        {"sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512"},
        {"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": "https://idp/keys"},
        {"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.allow.unsecured.tokens": "true"},
        {
            "listener.name.outside.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.outside.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        },
    ],
)
def test_what_is_good(options: dict[str, str]) -> None:
    assert found(options) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {},
            "GSSAPI (Kerberos), Kafka's default, is not served; set it to some of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        ({"sasl.enabled.mechanisms": "PLAIN,GSSAPI"} | USERS, "GSSAPI (Kerberos), Kafka's default, is not served"),
        ({"sasl.enabled.mechanisms": ""}, "it names none"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, f"give users in {JAAS}"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", JAAS: f'{PLAIN_MODULE} required username="a" password="secret";'},
            "nobody has a password",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN", JAAS: f'{PLAIN_MODULE} required user_a="secret"'},
            f"{JAAS} cannot be used",
        ),
        (
            {"sasl.enabled.mechanisms": "PLAIN", JAAS: f'{SCRAM_MODULE} required user_a="secret";'},
            "another login module",
        ),
        ({"sasl.enabled.mechanisms": "OAUTHBEARER"}, "set sasl.oauthbearer.jwks.endpoint.url to the keys"),
        (
            {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.allow.unsecured.tokens": "true",
                "listener.name.outside.oauthbearer.sasl.jaas.config": (
                    f'{OAUTH_MODULE} required unsecuredValidatorAllowableClockSkewMs="soon";'
                ),
            },
            "oauthbearer.sasl.jaas.config cannot be used",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write(options: dict[str, str], said: str) -> None:
    (problem,) = found(options)
    assert said in problem
    assert "secret" not in problem


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(token_signatures, "import_module", missing)
    options = {"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.jwks.endpoint.url": "https://idp/keys"}
    (problem,) = found(options)
    assert "pip install 'odradek[security]'" in problem
