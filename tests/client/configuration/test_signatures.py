"""Shows how a client gets the parameters of its configuration: at run time here, for mypy and pyright by this file.

Both check the tests, too: a call that they did not understand, or a reveal that changed, would fail `make types`.
"""

import inspect
from typing import Any, assert_type, overload

import pytest

from odradek.client.admin.config import AdminConfig
from odradek.client.configuration.addresses import Address
from odradek.client.configuration.signatures import config_of, configured_by
from odradek.client.errors.client_errors import ConfigError
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.hooks.interceptors import Interceptor

SERVERS = "localhost:9092"


class Plain:
    """As a client may be written."""

    @configured_by(ProducerConfig)
    def __init__(self, config: ProducerConfig) -> None:
        self.config = config


class Overloaded:
    """So that type checkers know of a ready `config=`, too."""

    @overload
    @configured_by(ProducerConfig)
    def __init__(self, config: ProducerConfig) -> None: ...
    @overload
    def __init__(self, *, config: ProducerConfig) -> None: ...
    def __init__(self, *values: Any, **settings: Any) -> None:
        self.config = config_of(ProducerConfig, values, settings)


def test_a_client_takes_the_settings_of_its_config() -> None:
    assert Plain("localhost:9092", linger_ms=20).config.linger_ms == 20
    assert Overloaded("localhost:9092", linger_ms=20).config.linger_ms == 20
    assert Overloaded(bootstrap_servers=["localhost:9092"], acks="all").config.acks == -1


def test_a_client_takes_a_ready_config() -> None:
    config = ProducerConfig(SERVERS, linger_ms=20)
    assert Overloaded(config=config).config is config
    ready: Any = {"config": config}
    assert Plain(**ready).config is config


@pytest.mark.parametrize("kind", [Plain, Overloaded])
@pytest.mark.parametrize(
    ("values", "settings", "said"),
    [
        ((), {}, "bootstrap_servers is missing"),
        ((), {"linger_ms": 5}, "bootstrap_servers is missing"),
        (("localhost",), {}, "bootstrap_servers must be"),
        ((SERVERS,), {"lingr_ms": 5}, "Did you mean linger_ms?"),
        ((), {"config": AdminConfig(SERVERS)}, "to a AdminConfig, not a ProducerConfig"),
        ((), {"config": ProducerConfig(SERVERS), "linger_ms": 5}, "config is set, and so are linger_ms"),
        ((SERVERS,), {"config": ProducerConfig(SERVERS)}, "config is set, and so are bootstrap_servers"),
    ],
)
def test_a_client_refuses_what_its_config_refuses(
    kind: Any, values: tuple[Any, ...], settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        kind(*values, **settings)
    assert said in str(caught.value)


def test_help_shows_the_settings() -> None:
    signature = inspect.signature(Plain)
    assert list(signature.parameters) == list(inspect.signature(ProducerConfig).parameters)
    assert signature.parameters["linger_ms"].default == 5
    assert "Accepting" not in str(signature)
    assert str(signature.parameters["acks"].annotation).endswith("'0', '1']")


def test_the_types_are_those_of_the_rows() -> None:
    """What is taken and what is had may differ: texts and numbers become numbers."""
    config = Plain(SERVERS, acks="1").config
    assert_type(config.acks, int)
    assert_type(config.linger_ms, int)
    assert_type(config.bootstrap_addresses, tuple[Address, ...])
    assert_type(config.interceptors, tuple[Interceptor, ...])
    assert_type(config.enable_idempotence, bool | None)


def test_a_wrong_call_is_an_error_for_type_checkers_too() -> None:
    """mypy refuses an `ignore` that nothing needs."""
    with pytest.raises(ConfigError):
        Plain(SERVERS, lingr_ms=5)  # type: ignore[call-arg]
    with pytest.raises(ConfigError):
        Plain(SERVERS, linger_ms="5")  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        Plain(SERVERS, acks="most")  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        Plain()  # type: ignore[call-arg]
    with pytest.raises(ConfigError):
        Overloaded(SERVERS, linger_ms="5")  # type: ignore[call-overload]
    with pytest.raises(ConfigError):
        Overloaded()  # type: ignore[call-overload]
