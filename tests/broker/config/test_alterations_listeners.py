"""What AlterConfigs and IncrementalAlterConfigs make of listeners' options and of references (DynamicBrokerConfig)."""

from collections.abc import Callable

import pytest

from odradek.broker.config.alterations import Alteration, alter_broker, replace_broker
from odradek.broker.config.option import ConfigError
from odradek.protocol.configs import Operation
from odradek.protocol.errors import ErrorCode
from tests.broker.config.security_rows import security_rows

__all__ = ["security_rows"]

pytestmark = pytest.mark.usefixtures("security_rows")

OF_LISTENER = "listener.name.x.ssl.key.password"
CONNECTIONS = "listener.name.x.max.connections"


def refusal(error: ErrorCode, message: str) -> "pytest.RaisesExc[ConfigError]":
    return pytest.RaisesExc(ConfigError, check=lambda caught: (caught.code, caught.message) == (error, message))


def test_what_kafka_changes_at_run_time_is_stored_for_one_listener() -> None:
    values = {OF_LISTENER: " s3cret ", CONNECTIONS: " 07 "}
    stored = {OF_LISTENER: "s3cret", CONNECTIONS: "7"}
    assert replace_broker(values, per_broker=True) == stored
    assert alter_broker({}, [Alteration(*pair) for pair in of_set(values)], per_broker=True) == stored
    delete = [Alteration(OF_LISTENER, Operation.DELETE, None)]
    assert alter_broker(stored, delete, per_broker=True) == {CONNECTIONS: "7"}


def of_set(values: dict[str, str]) -> list[tuple[str, int, str]]:
    return [(name, int(Operation.SET), text) for name, text in values.items()]


def test_limits_of_a_listener_may_be_set_for_all_brokers_and_nothing_else_of_it() -> None:
    assert replace_broker({CONNECTIONS: "7"}, per_broker=False) == {CONNECTIONS: "7"}
    message = f"Cannot update these configs at default cluster level, broker id must be specified: [{OF_LISTENER}]"
    with refusal(ErrorCode.INVALID_REQUEST, message):
        replace_broker({OF_LISTENER: "x", CONNECTIONS: "7"}, per_broker=False)


@pytest.mark.parametrize("name", ["listener.name.x.ssl.client.auth", "listener.name.x.plain.sasl.jaas.config"])
def test_what_a_running_listener_does_not_take_over_is_refused(name: str) -> None:
    """Kafka stores it, and it has no effect, not even after the next start."""
    with refusal(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{name}]"):
        replace_broker({name: "none"}, per_broker=True)
    assert alter_broker({name: "x"}, [Alteration(name, Operation.DELETE, None)], per_broker=True) == {}


def test_what_is_changed_by_listener_is_not_changed_without_one() -> None:
    message = (
        "These security configs can be dynamically updated only per-listener using the listener prefix: "
        "[ssl.key.password]"
    )
    with refusal(ErrorCode.INVALID_REQUEST, message):
        replace_broker({"ssl.key.password": "x"}, per_broker=True)


def test_a_wrong_value_is_refused_under_its_whole_name() -> None:
    message = (
        "Invalid value many for configuration listener.name.x.max.connections: it must be a whole number of 32 bits of "
        "at least 0."
    )
    with refusal(ErrorCode.INVALID_CONFIG, message):
        replace_broker({CONNECTIONS: "many"}, per_broker=True)


@pytest.mark.parametrize("name", [OF_LISTENER, CONNECTIONS, "no.such.option", "listener.name.x.no.such"])
@pytest.mark.parametrize("value", ["${file:/etc/shadow:root}", "x${env:HOME}y", "${dir:/etc:shadow}", "${a:b:c}"])
def test_a_reference_is_refused(name: str, value: str) -> None:
    """Kafka would look it up, on each broker: whoever may change options could read any file that it may."""
    changes: tuple[Callable[[], object], ...] = (
        lambda: replace_broker({name: value}, per_broker=True),
        lambda: alter_broker({}, [Alteration(name, Operation.SET, value)], per_broker=True),
    )
    for change in changes:
        with pytest.raises(ConfigError, match=r"^Values by reference count in the file") as caught:
            change()
        assert (caught.value.code, value in caught.value.message) == (ErrorCode.INVALID_CONFIG, False)
