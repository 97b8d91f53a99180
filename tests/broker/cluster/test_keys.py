"""Keys and values: each kind comes back as it was written, newer and broken ones are refused, names are Kafka's."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster import keys
from odradek.broker.cluster.keys import (
    BrokerState,
    KeyKind,
    MalformedMetadata,
    NodeState,
    PartitionState,
    TopicState,
    check_collision,
    check_topic_name,
    parse_key,
    parse_partition,
)
from odradek.broker.cluster.values import FORMAT_VERSION
from odradek.protocol.errors import ErrorCode, KafkaError

TOPIC_ID = bytes(range(16))
BROKER = BrokerState(7, {"PLAINTEXT": ("::1", 9092), "IN": ("host", 0)}, "rack ä", TOPIC_ID, epoch=5)
TOPIC = TopicState(TOPIC_ID, 12, revision=5)
PARTITION = PartitionState(TOPIC_ID, (1, 2, 3), (2, 1), 2, 4, 9, revision=5)
VALUES = {
    "broker": BROKER.encode(),
    "topic": TOPIC.encode(),
    "partition": PARTITION.encode(),
    "controller": keys.encode_controller(3),
    "cluster": keys.encode_cluster("abc"),
    "producer ids": keys.encode_producer_ids(2**40),
    "configs": keys.encode_configs({"retention.ms": "1"}),
    "changing": keys.encode_changing(TOPIC_ID),
}


def decode(kind: str, value: bytes) -> object:
    match kind:
        case "broker":
            return keys.decode_broker(value, 7, 5)
        case "topic":
            return keys.decode_topic(value, "t", 5)
        case "partition":
            return keys.decode_partition(value, "t", 0, 5)
        case "controller":
            return keys.decode_controller(value)
        case "cluster":
            return keys.decode_cluster(value)
        case "producer ids":
            return keys.decode_producer_ids(value)
        case "configs":
            return keys.decode_configs(value, "/configs/topics/t")
        case _:
            return keys.decode_changing(value, "t")


def test_what_is_encoded_is_decoded() -> None:
    expected = [BROKER, TOPIC, PARTITION, 3, "abc", 2**40, {"retention.ms": "1"}, TOPIC_ID]
    assert [decode(kind, value) for kind, value in VALUES.items()] == expected
    decoded = keys.decode_broker(VALUES["broker"], 7, 5)
    assert (decoded.epoch, keys.decode_topic(VALUES["topic"], "t", 5).revision) == (5, 5)
    bare = BrokerState(1, {})
    assert keys.decode_broker(bare.encode(), 1) == bare


@pytest.mark.parametrize("kind", VALUES)
def test_a_newer_format_is_refused_and_says_whose(kind: str) -> None:
    fields = json.loads(VALUES[kind]) | {"v": FORMAT_VERSION + 1}
    with pytest.raises(MalformedMetadata, match=r"^the metadata of .+ has format version 2, written by a newer"):
        decode(kind, json.dumps(fields).encode())


@pytest.mark.parametrize("kind", VALUES)
def test_each_field_is_needed_and_has_its_type(kind: str) -> None:
    fields = json.loads(VALUES[kind])
    for name in fields:
        for wrong in (None, True, {"x": None}, [None], 1.5):
            if name == "rack" and wrong is None:
                continue  # a broker may have none
            with pytest.raises(MalformedMetadata):
                decode(kind, json.dumps(fields | {name: wrong}).encode())
    unknown = fields | {"added later": 1}
    assert decode(kind, json.dumps(unknown).encode()) == decode(kind, VALUES[kind])


@given(st.binary(max_size=40))
def test_bytes_that_are_no_value_of_ours_are_refused(value: bytes) -> None:
    for kind in VALUES:
        with pytest.raises(MalformedMetadata):
            decode(kind, value)


def test_each_key_says_what_it_stands_for() -> None:
    assert parse_key(keys.CLUSTER_KEY) == (KeyKind.CLUSTER, "")
    assert parse_key(keys.CONTROLLER_KEY) == (KeyKind.CONTROLLER, "")
    assert parse_key(keys.PRODUCER_IDS_KEY) == (KeyKind.PRODUCER_IDS, "")
    assert parse_key(keys.broker_key(12)) == (KeyKind.BROKER, "12")
    assert parse_key(keys.topic_key("a.b-c_d")) == (KeyKind.TOPIC, "a.b-c_d")
    assert parse_key(keys.partition_key("t", 3)) == (KeyKind.PARTITION, "t/3")
    assert parse_key(keys.changing_key("t")) == (KeyKind.CHANGING, "t")
    assert parse_key(keys.topic_config_key("t")) == (KeyKind.TOPIC_CONFIG, "t")
    assert parse_key(keys.broker_config_key(1)) == (KeyKind.BROKER_CONFIG, "1")
    assert parse_key(keys.broker_config_key(None)) == (KeyKind.BROKER_CONFIG, "default")
    assert parse_key(keys.group_config_key("a/b c")) == (KeyKind.GROUP_CONFIG, "a/b c")
    assert parse_key("/somebody/else")[0] is KeyKind.FOREIGN
    assert keys.partition_key("t", 3).startswith(keys.partitions_prefix("t"))


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True), st.integers(0, 100_000))
def test_topic_and_index_are_found_in_a_partition_key(topic: str, index: int) -> None:
    key = keys.partition_key(topic, index)
    assert parse_partition(key.removeprefix(keys.PARTITIONS_PREFIX)) == (topic, index)
    check_topic_name(topic) if topic not in (".", "..") else None


@pytest.mark.parametrize("name", ["t", "t/", "/1", "t/x", "t/-1", "t/01", "t/1/2", "t/٣"])
def test_a_key_that_names_no_partition_is_refused(name: str) -> None:
    with pytest.raises(MalformedMetadata, match="names no partition"):
        parse_partition(name)


@pytest.mark.parametrize("name", ["", "x", "-1", "01", "1/2", "default"])
def test_a_key_that_names_no_broker_is_refused(name: str) -> None:
    with pytest.raises(MalformedMetadata, match="is no broker id"):
        keys.parse_broker_id(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a/b", "'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a b", "'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("ä", "'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
    ],
)
def test_illegal_topic_names_are_refused_in_kafkas_words(name: str, reason: str) -> None:
    with pytest.raises(KafkaError) as caught:
        check_topic_name(name)
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert caught.value.message == f"Topic name is invalid: {reason}"


@pytest.mark.parametrize("name", ["a", "...", "A-z_0.9", "x" * 249, "__consumer_offsets"])
def test_legal_topic_names_are_taken(name: str) -> None:
    check_topic_name(name)


def test_names_that_differ_in_dots_and_underscores_only_collide() -> None:
    with pytest.raises(KafkaError) as caught:
        check_collision("a_b.c", ["x", "a.b_c", "a.b.c", "a-b-c"])
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert caught.value.message == "Topic 'a_b.c' collides with existing topic: a.b.c, a.b_c"
    check_collision("a_b", ["a_b", "ab", "a-b"])
    check_collision("ab", ["a_b"])


def test_a_node_is_known_by_its_directories_and_addresses() -> None:
    node = NodeState((TOPIC_ID,), "r1", {"PLAINTEXT": ("h", 9092)}, revision=5)
    decoded = keys.decode_node(node.encode(), 1, 5)
    assert (decoded, decoded.revision) == (node, 5)
    fields = json.loads(node.encode())
    del fields["endpoints"]
    assert keys.decode_node(json.dumps(fields).encode(), 1).endpoints == {}, "as it was written once"
    with pytest.raises(MalformedMetadata, match="node 1 has no usable field 'endpoints'"):
        keys.decode_node(json.dumps(fields | {"endpoints": {"PLAINTEXT": "h:9092"}}).encode(), 1)


def test_what_a_partition_need_not_have_comes_back_too() -> None:
    state = replace(PARTITION, elr=(3,), adding=(2,), removing=(1,), offline=(3,), last_known_leader=2)
    assert keys.decode_partition(state.encode(), "orders", 0) == state
    assert b"offline" not in PARTITION.encode()
