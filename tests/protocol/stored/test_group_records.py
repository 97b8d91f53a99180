"""Records of `__consumer_offsets`: types and versions in front, values of every version back from their bytes, and what
is unknown told apart from what is damaged.

That the bytes are Kafka's is shown in `tests/protocol/test_kafka_serialization.py`.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.codec.schema import Message
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.stored.consumer_group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    TopicPartitions,
)
from odradek.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.stored.group_records import (
    KEYS,
    OTHER_TYPES,
    VALUES,
    UnknownKey,
    UnknownValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from odradek.protocol.stored.offset_commit import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue
from odradek.protocol.stored.record_key import RecordKey
from tests.protocol.strategies import case_name, messages

TOPIC_ID = bytes(range(16))
PAIRS = list(zip(KEYS, VALUES, strict=True))
VERSIONS = [(key, value, v) for key, value in PAIRS for v in range(value.min_version, value.max_version + 1)]
OFFSET_KEY = OffsetCommitKey(group="g", topic="t", partition=3)
GROUP_KEY = GroupMetadataKey(group="g")


def test_each_key_has_the_type_of_its_value() -> None:
    assert [(key.api_key, value.api_key) for key, value in PAIRS] == [(n, n) for n in (*range(9), 16)]
    assert [key.__name__.removesuffix("Key") for key, _ in PAIRS] == [
        value.__name__.removesuffix("Value") for _, value in PAIRS
    ]
    assert not {key.api_key for key in KEYS} & OTHER_TYPES.keys()


@pytest.mark.parametrize(("key_class", "value_class", "version"), VERSIONS, ids=case_name)
@settings(max_examples=10)
@given(data=st.data())
def test_keys_and_values_come_back(
    key_class: Any, value_class: type[Message], version: int, data: st.DataObject
) -> None:
    """From bytes and from a slice of a batch, at every version; what follows is ignored, as Kafka does."""
    key: Any = data.draw(messages(key_class, 0))
    value: Any = data.draw(messages(value_class, version))
    for tail in (b"", b"more"):
        assert decode_key(encode_key(key) + tail) == key
        assert decode_value(key, memoryview(encode_value(value, version) + tail)) == value


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        (LegacyOffsetCommitKey(group="g", topic="t", partition=3), b"\x00\x00\x00\x01g\x00\x01t\x00\x00\x00\x03"),
        (OFFSET_KEY, b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x03"),
        (GROUP_KEY, b"\x00\x02\x00\x01g"),
        (ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), b"\x00\x05\x00\x01g\x00\x01m"),
    ],
)
def test_keys_written_out_by_hand(key: Any, encoded: bytes) -> None:
    assert encode_key(key) == encoded
    assert decode_key(encoded) == key


COMMITTED = b"\x00\x00\x00\x00\x00\x00\x00\x09"
AT = b"\x00\x00\x00\x00\x00\x00\x00\x07"
PARTS = b"\x02" + TOPIC_ID + b"\x02\x00\x00\x00\x05"  # one topic with its id; one partition
VALUES_BY_HAND: list[tuple[RecordKey[Any], Message, int, bytes]] = [
    (
        OFFSET_KEY,
        OffsetCommitValue(offset=9, metadata="m", commit_timestamp=7, expire_timestamp=8),
        1,
        b"\x00\x01" + COMMITTED + b"\x00\x01m" + AT + b"\x00" * 7 + b"\x08",
    ),
    (
        OFFSET_KEY,
        OffsetCommitValue(offset=9, leader_epoch=4, metadata="m", commit_timestamp=7),
        3,
        b"\x00\x03" + COMMITTED + b"\x00\x00\x00\x04\x00\x01m" + AT,
    ),
    (
        OFFSET_KEY,
        OffsetCommitValue(offset=9, leader_epoch=4, metadata="m", commit_timestamp=7, topic_id=TOPIC_ID),
        4,
        b"\x00\x04" + COMMITTED + b"\x00\x00\x00\x04\x02m" + AT + b"\x01\x00\x10" + TOPIC_ID,
    ),
    (
        GROUP_KEY,
        GroupMetadataValue(
            protocol_type="consumer", generation=2, protocol=None, leader=None, current_state_timestamp=7, members=[]
        ),
        3,
        b"\x00\x03\x00\x08consumer\x00\x00\x00\x02\xff\xff\xff\xff" + AT + b"\x00\x00\x00\x00",
    ),
    (
        ConsumerGroupMetadataKey(group_id="g"),
        ConsumerGroupMetadataValue(epoch=2, metadata_hash=7),
        0,
        b"\x00\x00\x00\x00\x00\x02\x01\x00\x08" + AT,
    ),
    (
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
        ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="c",
            client_host="h",
            subscribed_topic_names=["t"],
            subscribed_topic_regex=None,
            server_assignor=None,
            classic_member_metadata=ClassicMemberMetadata(
                session_timeout_ms=9, supported_protocols=[ClassicProtocol(name="p", metadata=b"x")]
            ),
        ),
        0,
        b"\x00\x00\x00\x00\x02c\x02h\x02\x02t\x00\xff\xff\xff\xff\x00"
        b"\x01\x00\x0c\x01\x00\x00\x00\x09\x02\x02p\x02x\x00\x00",  # the tag has 12 bytes, 1: not null
    ),
    (
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
        ConsumerGroupMemberMetadataValue(
            instance_id="i",
            rack_id="r",
            client_id="c",
            client_host="h",
            subscribed_topic_names=[],
            subscribed_topic_regex="t",
            rebalance_timeout_ms=9,
            server_assignor="a",
        ),
        0,
        b"\x00\x00\x02i\x02r\x02c\x02h\x01\x02t\x00\x00\x00\x09\x02a"
        b"\x01\x00\x01\x00",  # a tag: number 0, one byte, null; without it, Kafka would take it for a classic member
    ),
    (
        ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=3,
            previous_member_epoch=2,
            state=1,
            assigned_partitions=[TopicPartitions(topic_id=TOPIC_ID, partitions=[5], assignment_epochs=[2])],
            partitions_pending_revocation=[TopicPartitions(topic_id=TOPIC_ID, partitions=[5])],
        ),
        0,
        b"\x00\x00\x00\x00\x00\x03\x00\x00\x00\x02\x01"
        + (PARTS + b"\x01\x00\x05\x02\x00\x00\x00\x02")  # a tag: number 0, 5 bytes, one epoch
        + (PARTS + b"\x00\x00"),
    ),
]


@pytest.mark.parametrize(
    ("key", "value", "version", "encoded"),
    VALUES_BY_HAND,
    ids=[f"{type(case[1]).__name__}-{case[2]}" for case in VALUES_BY_HAND],
)
def test_values_written_out_by_hand(key: RecordKey[Message], value: Message, version: int, encoded: bytes) -> None:
    assert encode_value(value, version).hex(" ") == encoded.hex(" ")
    assert decode_value(key, encoded) == value


def test_an_unknown_type_is_told_by_its_name() -> None:
    found = decode_key(b"\x00\x0bwhatever")
    assert found == UnknownKey(11)
    assert isinstance(found, UnknownKey)
    assert found.type_name == "ShareGroupMetadata"
    assert decode_key(b"\xff\xff") == UnknownKey(-1)
    assert UnknownKey(99).type_name == "type 99"


@pytest.mark.parametrize("version", [-1, 5, 32767])
def test_an_unknown_version_of_a_value_is_no_damage(version: int) -> None:
    assert decode_value(OFFSET_KEY, version.to_bytes(2, signed=True)) == UnknownValue(1, version)


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x00\x01", b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00", b"\x00\x02\xff\xff"]
)
def test_keys_that_do_not_parse_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_key(data)


@pytest.mark.parametrize("data", [b"", b"\x03", b"\x00\x03" + COMMITTED, b"\x00\x00" + COMMITTED + b"\xff\xff" + AT])
def test_values_that_do_not_parse_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_value(OFFSET_KEY, data)


def test_a_version_that_is_not_declared_is_not_written() -> None:
    with pytest.raises(ValueError, match="declared for versions 0 to 4, not for 5"):
        encode_value(OffsetCommitValue(offset=1, metadata="", commit_timestamp=1), 5)
