"""Shows the rules between settings, a row for each combination, against what Java's clients do with the same row.

The facts are those of `golden/java_facts.py`, told by ProducerConfig and KafkaProducer of Apache Kafka 4.3.1.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ConfigError
from odradek.client.producer.config import ProducerConfig
from processes.jars import KAFKA_VERSION
from tests.client.golden import java_facts

JAVA = java_facts.read()
RULED = ("enable.idempotence", "acks", "retries", "max.in.flight.requests.per.connection")
UNSET = "unset"


def test_the_facts_are_those_of_the_version_that_we_compare_with() -> None:
    assert JAVA["version"] == [KAFKA_VERSION], "python -m tests.client.golden.java_facts"


def given(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The settings of a row of facts, as a property file has them."""
    return {"bootstrap.servers": "localhost:9092"} | {name: row[name] for name in names if row[name] != UNSET}


@pytest.mark.parametrize("row", JAVA["idempotence"], ids=lambda row: " ".join(f"{row[name]}" for name in RULED))
def test_idempotence_is_decided_as_by_kafka(row: Mapping[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """KIP-679, each combination of the four settings: enable_idempotence, acks, retries, requests in flight.

    What Java's ProducerConfig of 4.3.1 says, and that our refusals name both settings, our switching off one line.
    """
    caplog.set_level(logging.INFO)
    settings = given(row, *RULED)
    enabled, acks, retries = row["enable.idempotence"], row["acks"], row["retries"]
    if row["idempotent"] == "refused":
        with pytest.raises(ConfigError) as caught:
            ProducerConfig.from_dict(settings)
        at_fault = {"enable_idempotence"}
        if enabled == "true" and (retries == "0" or acks in ("0", "1")):
            at_fault |= {"retries"} if retries == "0" else set()
            at_fault |= {"acks"} if acks in ("0", "1") else set()
        else:
            at_fault.add("max_in_flight_requests_per_connection")
        assert set(caught.value.settings) == at_fault
        assert all(name in str(caught.value) for name in at_fault)
        assert not caplog.records
        return
    config = ProducerConfig.from_dict(settings)
    assert config.is_idempotent is row["idempotent"]
    assert config.acks == row["resolved acks"]
    assert type(config.acks) is int
    switched_off = enabled == UNSET and not row["idempotent"]
    assert [record.levelno for record in caplog.records] == [logging.INFO] * switched_off
    for name, decides in (("retries=0", retries == "0"), (f"acks={acks}", acks in ("0", "1"))):
        assert (name in caplog.text) is (switched_off and decides)


@pytest.mark.parametrize("row", JAVA["delivery timeout"], ids=lambda row: " ".join(map(str, row.values())))
def test_the_delivery_timeout_is_decided_as_by_kafka(row: Mapping[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """KIP-91: refused when set below linger + request timeout, raised to the sum with a warning when not set."""
    settings = given(row, "delivery.timeout.ms", "linger.ms", "request.timeout.ms")
    if row["resolved"] == "refused":
        with pytest.raises(ConfigError) as caught:
            ProducerConfig.from_dict(settings)
        assert set(caught.value.settings) == {"delivery_timeout_ms", "linger_ms", "request_timeout_ms"}
        return
    config = ProducerConfig.from_dict(settings)
    assert config.delivery_timeout_ms == row["resolved"]
    raised = row["delivery.timeout.ms"] == UNSET and row["resolved"] > 120_000
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * raised


def test_a_delivery_timeout_that_a_rule_raised_is_raised_again() -> None:
    """A copy with a longer request timeout follows the same rule: the user has set nothing."""
    config = ProducerConfig("localhost:9092", request_timeout_ms=130_000)
    assert config.delivery_timeout_ms == 130_005
    assert replace(config, request_timeout_ms=140_000).delivery_timeout_ms == 140_005
    with pytest.raises(ConfigError):
        ProducerConfig("localhost:9092", request_timeout_ms=130_000, delivery_timeout_ms=120_000)


@pytest.mark.parametrize("row", JAVA["reconnect backoff"], ids=lambda row: " ".join(map(str, row.values())))
def test_the_reconnect_backoff_is_decided_as_by_kafka(row: Mapping[str, Any]) -> None:
    config = ProducerConfig.from_dict(given(row, "reconnect.backoff.ms", "reconnect.backoff.max.ms"))
    assert config.reconnect_backoff_max_ms == row["resolved"]


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"retry_backoff_ms": 2_000}, "retry_backoff_ms is above retry_backoff_max_ms"),
        ({"retry_backoff_ms": 1_000}, ""),
        ({"socket_connection_setup_timeout_ms": 30_001}, "is above socket_connection_setup_timeout_max_ms"),
        ({"reconnect_backoff_ms": 60}, "reconnect_backoff_max_ms is set to reconnect_backoff_ms=60"),
        ({"reconnect_backoff_ms": 60, "reconnect_backoff_max_ms": 1_000}, ""),
        ({}, ""),
    ],
)
def test_a_backoff_that_does_not_grow_is_warned_of(
    settings: dict[str, Any], warned: str, caplog: pytest.LogCaptureFixture
) -> None:
    ClientConfig("localhost:9092", client_id="me", **settings)
    assert warned in caplog.text
    assert len(caplog.records) == bool(warned)
    if warned:
        assert "me: " in caplog.text


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"acks": 1}, {"acks"}),
        ({"retries": 0}, {"retries"}),
        ({"enable_idempotence": False}, {"enable_idempotence"}),
        ({"acks": 0, "retries": 0}, {"acks", "retries"}),
    ],
)
def test_transactions_imply_idempotence_and_refuse_what_contradicts_it(
    settings: dict[str, Any], names: set[str]
) -> None:
    """ProducerConfig of Kafka: "Cannot set a transactional.id without also enabling idempotence"."""
    with pytest.raises(ConfigError, match="transactional_id='t'") as caught:
        ProducerConfig("localhost:9092", transactional_id="t", **settings)
    assert set(caught.value.settings) == {"transactional_id"} | names


def test_a_transactional_id_makes_the_producer_idempotent_with_all_acks() -> None:
    config = ProducerConfig.from_dict({"bootstrap.servers": "localhost:9092", "transactional.id": "t"})
    assert (config.is_idempotent, config.acks, config.transaction_timeout_ms) == (True, -1, 60_000)
    with pytest.raises(ConfigError, match="empty"):
        ProducerConfig("localhost:9092", transactional_id="")
