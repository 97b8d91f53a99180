"""What a test's process and that of its cluster tell each other arrives as it was: values of all kinds, and errors."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.config.option import ConfigError
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.groups import MemberDescription
from odradek.client.consumer.records import ConsumerRecord
from odradek.client.errors.broker_errors import TopicExists, broker_error
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.testing.broker_state import WrongBrokerState
from odradek.testing.cluster_options import ClusterOptions
from odradek.testing.remote.values import NotSendable, from_json, to_json
from odradek.testing.waiting import WaitedInVain

keys = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.binary(), st.tuples(st.text(), st.integers()))
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(keys, st.floats(allow_nan=False), st.sampled_from(ErrorCode)),
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(keys, inner),
        st.sets(keys),
        st.builds(ConsumerRecord, st.text(), st.integers(), st.integers(), st.integers(), inner, inner),
    ),
    max_leaves=20,
)


def over_there(value: Any) -> Any:
    return from_json(json.loads(json.dumps(to_json(value))))


@given(values)
def test_values_arrive_as_they_were(value: Any) -> None:
    arrived = over_there(value)
    assert arrived == value
    assert type(arrived) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        ClusterOptions(brokers=2, topics={"orders": 6}, config={"a": "b"}, subprocess=True),
        MemberDescription("m", None, "c", "h", b"\0", partitions=(TopicPartition("orders", 0),)),
        {TopicPartition("orders", 1): 7},
    ],
)
def test_what_the_test_kit_sends_arrives_as_it_was(value: Any) -> None:
    assert over_there(value) == value


def failed_to_open() -> OSError:
    try:
        Path("/nowhere/file").read_bytes()
    except OSError as error:
        return error
    raise AssertionError("there is such a file")


@pytest.mark.parametrize(
    "error",
    [
        WrongBrokerState("broker 1 is down"),
        WaitedInVain("not so"),
        ConfigError("num.partitions is -1"),
        TopicExists(int(ErrorCode.TOPIC_ALREADY_EXISTS), "told so", what="CreateTopics of orders"),
        ItemsFailed("create_topics", {"orders": broker_error(36, "told so")}, {"bills": 1}),
        failed_to_open(),
        KeyError("orders"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_keep_their_class_and_their_words(error: Exception) -> None:
    arrived = over_there(error)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived).keys() == vars(error).keys()


def test_errors_of_others_are_named() -> None:
    class Odd(Exception):
        pass

    arrived = over_there(Odd("quite"))
    assert type(arrived) is RuntimeError
    assert str(arrived).endswith("Odd: quite")


def test_what_cannot_be_sent_is_said() -> None:
    with pytest.raises(NotSendable, match="object stays in the process that has it: <object object"):
        to_json({"a": [object()]})
    error = WrongBrokerState("a", object())
    arrived = over_there(error)
    assert (type(arrived), str(arrived)) == (WrongBrokerState, str(error)), "what an error knows is shown"
