"""What AlterConfigs and IncrementalAlterConfigs make of what is stored: in Kafka's order of checks and in its words."""

from collections.abc import Mapping

import pytest

from odradek.broker.config.alterations import (
    Alteration,
    alter_broker,
    alter_topic,
    new_topic_overrides,
    replace_broker,
)
from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.option import ConfigError, Dynamic
from odradek.protocol.configs import Operation
from odradek.protocol.errors import ErrorCode

SET, DELETE, APPEND, SUBTRACT = Operation.SET, Operation.DELETE, Operation.APPEND, Operation.SUBTRACT


def refusal(error: ErrorCode, message: str) -> "pytest.RaisesExc[ConfigError]":
    return pytest.RaisesExc(ConfigError, check=lambda caught: (caught.code, caught.message) == (error, message))


@pytest.mark.parametrize(
    ("current", "alterations", "expected"),
    [
        ({}, [("segment.ms", SET, " 07 ")], {"segment.ms": "7"}),
        ({"segment.ms": "7"}, [("segment.ms", SET, "8"), ("preallocate", SET, "TRUE")],
         {"segment.ms": "8", "preallocate": "true"}),
        ({"segment.ms": "7", "gone": "1"},
         [("segment.ms", DELETE, None), ("gone", DELETE, ""), ("never", DELETE, None)], {}),
        ({}, [("cleanup.policy", APPEND, "delete")], {"cleanup.policy": "delete"}),
        ({}, [("cleanup.policy", APPEND, "compact")], {"cleanup.policy": "delete,compact"}),
        ({}, [("cleanup.policy", APPEND, "compact,")], {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": "delete"}, [("cleanup.policy", SUBTRACT, "delete,absent")], {"cleanup.policy": ""}),
        ({}, [("leader.replication.throttled.replicas", APPEND, "0:1, 1:2,0:1")],
         {"leader.replication.throttled.replicas": "0:1,1:2"}),
        ({"leader.replication.throttled.replicas": "0:1,1:2"},
         [("leader.replication.throttled.replicas", APPEND, "1:2,2:3")],
         {"leader.replication.throttled.replicas": "0:1,1:2,2:3"}),
        ({"leader.replication.throttled.replicas": "0:1,1:2"},
         [("leader.replication.throttled.replicas", SUBTRACT, "0:1")],
         {"leader.replication.throttled.replicas": "1:2"}),
        ({"from.the.future": "1"}, [("segment.ms", SET, "7")], {"from.the.future": "1", "segment.ms": "7"}),
    ],
)  # fmt: skip
def test_a_topic_is_altered(
    current: dict[str, str], alterations: list[tuple[str, int, str | None]], expected: Mapping[str, str]
) -> None:
    before = dict(current)
    assert alter_topic(current, [Alteration(*each) for each in alterations]) == expected
    assert current == before, "what is stored is not touched"


@pytest.mark.parametrize(
    ("alterations", "code", "message"),
    [
        ([("nosuch", SET, "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: nosuch"),
        ([("log.segment.bytes", SET, "2000000")], ErrorCode.INVALID_CONFIG,
         "Unknown topic config name: log.segment.bytes; for a topic it is segment.bytes"),
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG,
         "Can't APPEND to key retention.ms because its type is not LIST."),
        ([("nosuch", SUBTRACT, "1")], ErrorCode.INVALID_CONFIG,
         "Can't SUBTRACT to key nosuch because its type is not LIST."),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms"),
        ([("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST,
         "Null value not supported for : cleanup.policy"),
        ([("retention.ms", 4, "1")], ErrorCode.INVALID_REQUEST, "Unknown operation 4 for configuration retention.ms"),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST,
         "Error due to duplicate config keys : retention.ms"),
        ([("max.compaction.lag.ms", SET, "5")], ErrorCode.INVALID_CONFIG,
         "conflict topic config setting min.compaction.lag.ms (99) > max.compaction.lag.ms (5)"),
        ([("cleanup.policy", APPEND, "")], ErrorCode.INVALID_CONFIG,
         "Invalid value delete, for configuration cleanup.policy: its items must not be empty."),
        ([("cleanup.policy", SET, "delete,")], ErrorCode.INVALID_CONFIG,
         "Invalid value delete, for configuration cleanup.policy: its items must not be empty."),
        ([("cleanup.policy", APPEND, "shrink")], ErrorCode.INVALID_CONFIG,
         "Invalid value delete,shrink for configuration cleanup.policy: it must be a list of compact, delete."),
        ([("segment.ms", SET, "7"), ("segment.bytes", SET, "13")], ErrorCode.INVALID_CONFIG,
         "Invalid value 13 for configuration segment.bytes: it must be a whole number of 32 bits of at least 1048576 "
         "(bytes)."),
    ],
)  # fmt: skip
def test_a_wrong_alteration_of_a_topic_is_refused(
    alterations: list[tuple[str, int, str | None]], code: ErrorCode, message: str
) -> None:
    with refusal(code, message):
        alter_topic({"min.compaction.lag.ms": "99"}, [Alteration(*each) for each in alterations])


def test_a_new_topic() -> None:
    assert new_topic_overrides({"segment.ms": " 7", "cleanup.policy": "delete , delete"}) == {
        "segment.ms": "7",
        "cleanup.policy": "delete",
    }
    with refusal(ErrorCode.INVALID_CONFIG, "Null value not supported for topic configs: a,b"):
        new_topic_overrides({"b": None, "a": None, "segment.ms": "1"})
    with refusal(ErrorCode.INVALID_CONFIG, "Unknown topic config name: retention; did you mean retention.ms?"):
        new_topic_overrides({"retention": "1"})
    with pytest.raises(ConfigError, match="conflict topic config setting"):
        new_topic_overrides({"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"})


def test_a_broker_is_altered() -> None:
    alterations = [Alteration("log.segment.bytes", SET, " 2000000"), Alteration("log.roll.ms", DELETE, None)]
    current = {"log.roll.ms": "5", "max.connections": "3"}
    for per_broker in (True, False):
        assert alter_broker(current, alterations, per_broker=per_broker) == {
            "max.connections": "3",
            "log.segment.bytes": "2000000",
        }
        assert replace_broker({"log.roll.ms": "06"}, per_broker=per_broker) == {"log.roll.ms": "6"}


@pytest.mark.parametrize(
    ("name", "value", "code", "message"),
    [
        ("num.partitions", "4", ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: [num.partitions]"),
        ("process.roles", "x", ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: [process.roles]"),
        ("ssl.keystore.key", "x", ErrorCode.INVALID_REQUEST,
         "These security configs can be dynamically updated only per-listener using the listener prefix: "
         "[ssl.keystore.key]"),
        ("max.connections", None, ErrorCode.INVALID_REQUEST, "Null value not supported for : max.connections"),
        ("log.cleanup.policy", "shrink", ErrorCode.INVALID_CONFIG,
         "Invalid value shrink for configuration log.cleanup.policy: it must be a list of compact, delete."),
    ],
)  # fmt: skip
def test_a_wrong_alteration_of_a_broker_is_refused(name: str, value: str | None, code: ErrorCode, message: str) -> None:
    with refusal(code, message):
        alter_broker({}, [Alteration(name, SET, value)], per_broker=True)
    with refusal(code, message):
        replace_broker({name: value}, per_broker=True)


def test_what_brokers_must_agree_on_is_not_set_for_one() -> None:
    """Nor does Kafka take it (KIP-966). It may be deleted, where another version has stored it."""
    with pytest.raises(ConfigError, match=r"^Broker-level min.insync.replicas cannot be altered") as refused:
        replace_broker({"max.connections": "5", "min.insync.replicas": "1"}, per_broker=True)
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert replace_broker({"min.insync.replicas": "1"}, per_broker=False) == {"min.insync.replicas": "1"}
    delete = [Alteration("min.insync.replicas", DELETE, None)]
    assert alter_broker({"min.insync.replicas": "1"}, delete, per_broker=True) == {}


def test_what_belongs_to_one_broker_is_not_set_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BROKER_OPTIONS["listeners"], "dynamic", Dynamic.PER_BROKER)
    message = "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
    with refusal(ErrorCode.INVALID_REQUEST, message):
        alter_broker({}, [Alteration("listeners", SET, "A://h:1")], per_broker=False)
    assert alter_broker({}, [Alteration("listeners", SET, "A://h:1")], per_broker=True) == {"listeners": "A://h:1"}


def test_names_that_are_unknown_are_stored_as_they_came() -> None:
    values = {"no.such.option": " x ", "": "y", "num.io.threads": "many", "listener.name.a.ssl.provider": "z"}
    alterations = [Alteration(name, SET, value) for name, value in values.items()]
    assert alter_broker({"old.one": "1"}, alterations, per_broker=True) == {"old.one": "1"} | values
    assert replace_broker(values, per_broker=True) == values
    assert alter_broker(values, [Alteration(name, DELETE, None) for name in values], per_broker=False) == {}


@pytest.mark.parametrize(
    ("name", "value"), [("listener.name.a.ssl.keystore.key", "x"), ("sasl.enabled.mechanisms", "PLAIN")]
)
def test_kafkas_options_of_one_broker_are_not_stored_for_all(name: str, value: str) -> None:
    message = f"Cannot update these configs at default cluster level, broker id must be specified: [{name}]"
    with refusal(ErrorCode.INVALID_REQUEST, message):
        replace_broker({name: value}, per_broker=False)


def test_an_option_that_may_not_be_set_may_be_deleted() -> None:
    """And another one be changed beside it: another version may have stored it."""
    stored = {"num.partitions": "1"}
    assert alter_broker(stored, [Alteration("max.connections", SET, "5")], per_broker=True) == {
        "num.partitions": "1",
        "max.connections": "5",
    }
    assert alter_broker(stored, [Alteration("num.partitions", DELETE, None)], per_broker=True) == {}


TWICE = [Alteration("a", SET, "1"), Alteration("a", SET, "2")]
NULL = Alteration("num.partitions", SET, None)
NO_LIST = Alteration("log.retention.ms", APPEND, "1")
FIXED = Alteration("node.id", SET, "1")
WRONG = Alteration("max.connections", SET, "many")
OF_ONE = Alteration("sasl.mechanism.inter.broker.protocol", SET, "PLAIN")


@pytest.mark.parametrize(
    ("alterations", "code", "message"),
    [
        ([NULL, *TWICE], ErrorCode.INVALID_REQUEST, "duplicate config keys"),
        ([NO_LIST, NULL], ErrorCode.INVALID_REQUEST, "Null value"),
        ([FIXED, NO_LIST], ErrorCode.INVALID_CONFIG, "Can't APPEND"),
        ([WRONG, FIXED], ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically"),
        ([OF_ONE, WRONG], ErrorCode.INVALID_CONFIG, "Invalid value many"),
        ([OF_ONE], ErrorCode.INVALID_REQUEST, "broker id must be specified"),
    ],
)
def test_the_first_of_several_mistakes_is_kafkas(alterations: list[Alteration], code: ErrorCode, message: str) -> None:
    """In the order of ConfigAdminManager.scala, whatever the order of the request."""
    with pytest.raises(ConfigError, match=message) as refused:
        alter_broker({}, alterations, per_broker=False)
    assert refused.value.code == code
