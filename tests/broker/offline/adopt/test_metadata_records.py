"""Records of Kafka's metadata log: round trips under Hypothesis, bytes that Kafka wrote, and what cannot be read."""

import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.offline.adopt.metadata_records import (
    DECLARED,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    read_record,
)
from odradek.protocol.codec.schema import Message
from odradek.protocol.errors import MalformedMessage
from processes.jars import APACHE_KAFKA, resolve
from tests.broker.offline.adopt.kafka_files import id_of, metadata_value

ids = st.binary(min_size=16, max_size=16)
numbers = st.integers(-(2**31), 2**31 - 1)
lists = st.lists(numbers, max_size=4)
changes = st.builds(
    PartitionChangeRecord,
    partition_id=numbers,
    topic_id=ids,
    isr=st.none() | lists,
    leader=numbers,
    replicas=st.none() | lists,
    removing_replicas=st.none() | lists,
    adding_replicas=st.none() | lists,
    leader_recovery_state=st.integers(-1, 1),
    directories=st.none() | st.lists(ids, max_size=3),
    eligible_leader_replicas=st.none() | lists,
    last_known_elr=st.none() | lists,
)
partitions = st.builds(
    PartitionRecord,
    partition_id=numbers,
    topic_id=ids,
    replicas=lists,
    isr=lists,
    removing_replicas=lists,
    adding_replicas=lists,
    leader=numbers,
    leader_recovery_state=st.integers(-1, 1),
    leader_epoch=numbers,
    partition_epoch=numbers,
    directories=st.lists(ids, max_size=3),
    eligible_leader_replicas=st.none() | lists,
    last_known_elr=st.none() | lists,
)
configs = st.builds(
    ConfigRecord,
    resource_type=st.integers(-128, 127),
    resource_name=st.text(),
    name=st.text(),
    value=st.none() | st.text(),
)


@given(changes | partitions | configs | st.builds(TopicRecord, name=st.text(), topic_id=ids))
def test_what_is_written_is_read_again(record: Message) -> None:
    assert read_record(metadata_value(record)) == record


def test_records_as_kafka_4_3_1_wrote_them_are_read() -> None:
    """A topic's creation and the stop of its only replica."""
    topic_id = bytes.fromhex("8c83d895e6a24504a0d667ec2b3dd6ac")
    created = bytes.fromhex("01020007") + b"orders" + topic_id + b"\0"
    assert read_record(created) == TopicRecord(name="orders", topic_id=topic_id)
    option = b"\x01\x04\x00\x02\x07orders\x0esegment.bytes\x081048576\x00"
    assert read_record(option) == ConfigRecord(
        resource_type=2, resource_name="orders", name="segment.bytes", value="1048576"
    )
    change = b"\x01\x05\x02" + bytes(4) + topic_id
    change += b"\x04" + b"\x00\x01\x01" + b"\x01\x04\xff\xff\xff\xff" + b"\x06\x05\x02\x00\x00\x00\x01"
    change += b"\x07\x05\x02\x00\x00\x00\x01"
    assert read_record(change) == PartitionChangeRecord(
        partition_id=0, topic_id=topic_id, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
    )


def test_an_unneeded_record_type_is_known_by_number_whatever_its_version_or_content() -> None:
    assert read_record(b"\x01\x12\x09 anything") == 18


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "the frame of a metadata record is cut"),
        (b"\x01\x02", "the frame of a metadata record is cut"),
        (b"\x00\x02\x00", "has frame version 0, only 1 is known"),
        (b"\x02\x02\x00", "has frame version 2, only 1 is known"),
        (b"\x01\x02\x01", "TopicRecord has version 1, 0 is the last known"),
        (b"\x01\x02\x00\x07order", "TopicRecord v0"),
        (metadata_value(TopicRecord(name="a", topic_id=id_of("a"))) + b"\0", "TopicRecord v0"),
    ],
)
def test_what_cannot_be_read_is_refused(value: bytes, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        read_record(value)


@given(st.binary())
def test_any_bytes_are_read_or_refused(value: bytes) -> None:
    try:
        read_record(value)
    except MalformedMessage as error:
        assert str(error)


@pytest.mark.java
@pytest.mark.parametrize("declared", DECLARED.values(), ids=lambda declared: declared.__name__)
def test_declarations_are_those_of_apache_kafka(declared: type[Message]) -> None:
    """Its own JSON lies in its jar: the same key, versions, fields in their order, tags and first versions."""
    (jar,) = [path for path in resolve(*APACHE_KAFKA) if path.name.startswith("kafka-metadata-")]
    with zipfile.ZipFile(jar) as archive:
        text = archive.read(f"common/metadata/{declared.__name__}.json").decode()
    theirs = json.loads("\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//")))
    assert declared.api_key == theirs["apiKey"]
    first, _, last = theirs["validVersions"].partition("-")
    assert (declared.min_version, declared.max_version) == (int(first), int(last or first))
    assert theirs["flexibleVersions"] == "0+"
    assert [
        (name, field.tag, f"{field.since}+") for name, field in declared.fields.items()
    ] == [
        (snake_case(field["name"]), field.get("tag"), field["versions"]) for field in theirs["fields"]
    ]  # fmt: skip


def snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")
