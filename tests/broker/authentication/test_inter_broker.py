"""How a broker says who it is to others: the settings of its client, its principal, and what is missing."""

from typing import Any

import pytest

from odradek.broker.access.principal import ANONYMOUS, Principal
from odradek.broker.authentication import inter_broker
from odradek.broker.authentication.inter_broker import check_login, inter_broker_principal, sasl_settings
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ConfigError
from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.client.configuration.client_config import ClientConfig
from tests.broker.authentication.listeners import OAUTH_MODULE, PLAIN_MODULE
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

SASL = SecurityProtocol.SASL_PLAINTEXT
JAAS = "listener.name.inside.{}.sasl.jaas.config"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def options_of(mechanism: str, line: str | None, **more: str) -> dict[str, str]:
    options = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER", **more}
    options["sasl.mechanism.inter.broker.protocol"] = mechanism
    return options if line is None else options | {JAAS.format(mechanism.lower()): line}


def settings_of(options: dict[str, str], disk: MemoryDisk | None = None) -> dict[str, Any]:
    return sasl_settings(BrokerConfig(options), "INSIDE", SASL, VirtualEnvironment(), disk or MemoryDisk())


@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", PLAIN_MODULE), ("SCRAM-SHA-512", SCRAM_MODULE)])
async def test_user_and_password_are_those_of_the_line(mechanism: str, module: str) -> None:
    options = options_of(mechanism, f'{module} required username="broker" password="a b";')
    check_login(BrokerConfig(options), "INSIDE", SASL)
    config = ClientConfig("a:1", **settings_of(options))
    assert config.sasl_credentials == ("broker", "a b")
    assert (config.security_protocol, config.sasl_mechanism) == ("SASL_PLAINTEXT", mechanism)
    assert inter_broker_principal(BrokerConfig(options), "INSIDE", SASL) == Principal("User", "broker")


async def test_without_sasl_there_is_nothing_to_say() -> None:
    for protocol, principal in ((SecurityProtocol.PLAINTEXT, ANONYMOUS), (SecurityProtocol.SSL, None)):
        assert sasl_settings(BrokerConfig(), "INSIDE", protocol, VirtualEnvironment(), MemoryDisk()) == {}
        assert inter_broker_principal(BrokerConfig(), "INSIDE", protocol) == principal
        check_login(BrokerConfig(), "INSIDE", protocol)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sasl.enabled.mechanisms": "PLAIN"}, "is GSSAPI, Kafka's default, which is not served"),
        (options_of("SCRAM-SHA-256", None), "which sasl.enabled.mechanisms of listener INSIDE does not name"),
        (options_of("PLAIN", None), f"{JAAS.format('plain')} is missing"),
        (options_of("PLAIN", f'{PLAIN_MODULE} required username="b" password="geheim"'), "cannot be used"),
        (options_of("PLAIN", f'{PLAIN_MODULE} required user_b="geheim";'), "has no username and password"),
        (
            options_of("PLAIN", f'{PLAIN_MODULE} required username="" password="geheim";'),
            "has no username and password",
        ),
        (options_of("OAUTHBEARER", None), "sasl.oauthbearer.token.endpoint.url is missing"),
        (
            options_of("OAUTHBEARER", None, **{"sasl.oauthbearer.token.endpoint.url": "https://idp/token"}),
            "has no clientId and clientSecret",
        ),
    ],
)
async def test_what_is_missing_is_named(options: dict[str, str], said: str) -> None:
    for ask in (lambda: settings_of(options), lambda: check_login(BrokerConfig(options), "INSIDE", SASL)):
        with pytest.raises(ConfigError, match=said) as caught:
            ask()
        assert "geheim" not in str(caught.value)


async def test_a_token_comes_from_a_file_anew_each_time() -> None:
    disk = MemoryDisk()
    disk.make_dir("/run")
    options = options_of("OAUTHBEARER", None, **{"sasl.oauthbearer.token.endpoint.url": "file:/run/token"})
    provide = settings_of(options, disk)["sasl_oauthbearer_token_provider"]
    for token in ("one.two.", "three.four."):
        disk.write_whole("/run/token", f"{token}\n".encode())
        assert await provide() == token
    assert inter_broker_principal(BrokerConfig(options), "INSIDE", SASL) is None


async def test_an_unsecured_token_is_made() -> None:
    options = options_of("OAUTHBEARER", f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";')
    token = await settings_of(options)["sasl_oauthbearer_token_provider"]()
    assert token.endswith(".")
    assert inter_broker_principal(BrokerConfig(options), "INSIDE", SASL) == Principal("User", "broker")


async def test_a_token_is_asked_for_with_the_brokers_own_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bytes | None, str]] = []
    answers = [b'{"access_token":"a.b.c","expires_in":60}', b'{"error":"x"}', b"[]"]

    def fetch(url: str, clock_s: object, *, body: bytes | None, headers: dict[str, str]) -> bytes:
        asked.append((url, body, headers["Authorization"]))
        return answers.pop(0)

    monkeypatch.setattr(inter_broker, "fetch", fetch)
    line = f'{OAUTH_MODULE} required clientId="broker" clientSecret="s:t" scope="kafka all";'
    options = options_of("OAUTHBEARER", line, **{"sasl.oauthbearer.token.endpoint.url": "https://idp/token"})
    provide = settings_of(options)["sasl_oauthbearer_token_provider"]
    assert await provide() == "a.b.c"
    for _ in range(2):
        with pytest.raises(ValueError, match="no access_token"):
            await provide()
    assert asked[0] == ("https://idp/token", b"grant_type=client_credentials&scope=kafka+all", "Basic YnJva2VyOnM6dA==")
