"""Shows that every message at every version comes back from its bytes, and that bytes which are no message are refused.

All of it goes through the public functions, so `decoding`, `encoding` and `source` are shown here too.
"""

import linecache
import traceback
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.codec.codec import decode, decode_prefix, encode, encode_parts
from odradek.protocol.codec.schema import Message, Struct, field, i8, message, struct, uuid
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.protocol.strategies import case_name, declared_layouts, messages, random_message

CASES = list(declared_layouts())


@pytest.mark.parametrize(("cls", "version"), CASES, ids=case_name)
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_every_message_comes_back_in_every_layout(cls: type[Message], version: int, data: st.DataObject) -> None:
    """Property: decode(encode(m)) == m, from bytes, bytearray and memoryview, behind a header of any length."""
    message = data.draw(messages(cls, version))
    encoded = encode(message, version)
    assert decode(cls, version, encoded) == message
    assert decode(cls, version, memoryview(b"head" + encoded), 4) == message
    assert decode(cls, version, bytearray(encoded)) == message


@pytest.mark.parametrize(("cls", "version"), CASES, ids=case_name)
def test_no_part_of_a_message_passes_for_a_whole_one(cls: type[Message], version: int) -> None:
    """Cut at every byte, and with a byte more: MalformedMessage. A slice beyond the end is silently short in Python."""
    rng = Random(f"{cls.__name__} {version}")
    for _ in range(5):
        encoded = encode(random_message(rng, cls, version), version)
        for size_bytes in range(len(encoded)):
            with pytest.raises(MalformedMessage, match=f"^{cls.__name__} v{version}: "):
                decode(cls, version, encoded[:size_bytes])
        with pytest.raises(MalformedMessage):
            decode(cls, version, encoded + b"\0")


def test_what_follows_a_message_is_ignored_where_that_is_asked_for() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    encoded = encode(request, 4)
    assert decode_prefix(MetadataRequest, 4, b"head" + encoded + b"tail", 4) == request
    assert decode_prefix(MetadataRequest, 4, encoded) == request
    with pytest.raises(MalformedMessage):
        decode_prefix(MetadataRequest, 4, encoded[:-1])


def produce(records: bytes | memoryview | None) -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=records)
    topic = TopicProduceData(name="orders", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


@pytest.mark.parametrize("version", [3, 9])
def test_records_are_never_copied(version: int) -> None:
    """Encoded, they are the very object; decoded, a view of the frame."""
    records = bytes(range(256)) * 4
    parts = encode_parts(produce(records), version)
    assert parts[1] is records
    assert len(parts) == (3 if version == 9 else 2)  # the tag sections follow

    frame = bytearray(b"".join(parts))
    decoded = decode(ProduceRequest, version, memoryview(frame))
    view = decoded.topic_data[0].partition_data[0].records
    assert isinstance(view, memoryview)
    assert view.obj is frame
    frame[frame.index(records)] = 77
    assert view[0] == 77


def test_several_record_sets_stand_in_their_places() -> None:
    """A Fetch of three partitions, one without records: head, records, head, records, tail."""
    sets = (b"first", b"", b"third" * 100)
    partitions = [PartitionData(partition_index=i, high_watermark=9, records=r) for i, r in enumerate(sets)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts = encode_parts(response, 12)
    assert [part for part in parts if part in sets] == [b"first", b"third" * 100]
    assert len(parts) == 5
    assert decode(FetchResponse, 12, b"".join(parts)) == response


def test_empty_and_null_records_differ() -> None:
    for records in (b"", None):
        for version in (3, 9):
            decoded = decode(ProduceRequest, version, encode(produce(records), version))
            assert decoded.topic_data[0].partition_data[0].records == records


def test_what_a_version_does_not_carry_is_left_out_and_comes_back_as_the_default() -> None:
    response = MetadataResponse(throttle_time_ms=7, brokers=[], cluster_id="c", controller_id=5, topics=[])
    assert encode(response, 0) == bytes(8)
    decoded = decode(MetadataResponse, 0, bytes(8))
    assert (decoded.throttle_time_ms, decoded.cluster_id, decoded.controller_id) == (0, None, -1)
    assert decoded.cluster_authorized_operations == -(2**31)


def test_defaults_of_decoded_messages_are_not_shared() -> None:
    first, second = (decode(ApiVersionsResponse, 0, bytes(6)) for _ in range(2))
    assert first.supported_features == []
    assert first.supported_features is not second.supported_features


# ------------------------------------------------------------------------------------------------- tagged fields
def test_tagged_fields_are_sent_when_they_differ_from_their_default() -> None:
    """Fetch v15 with both tags of the request: count, then (tag, size, value) by tag; and with none."""
    request = FetchRequest(max_wait_ms=1, min_bytes=2, topics=[])
    empty = encode(request, 15)
    assert empty.endswith(b"\x00")
    request.replica_state = ReplicaState(replica_id=1, replica_epoch=2)
    request.cluster_id = "ab"
    expected = (
        b"\x02"  # two tagged fields
        b"\x00\x03\x03ab"  # tag 0, 3 bytes: compact string
        b"\x01\x0d\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00"  # tag 1, 13 bytes: int32, int64, no tags
    )
    assert encode(request, 15) == empty[:-1] + expected
    assert decode(FetchRequest, 15, encode(request, 15)) == request
    assert encode(request, 12) == encode(FetchRequest(max_wait_ms=1, min_bytes=2, topics=[], cluster_id="ab"), 12)


@struct
class Part(Struct):
    number: i8


@message(key=-1, versions=(0, 0), flexible=0)
class NullTags(Message):
    part: Part | None = field(tag=0, nullable_since=0, default=None)
    numbers: list[i8] | None = field(tag=1, default_factory=list[i8])


@pytest.mark.parametrize(
    ("tagged", "encoded"),
    [
        (NullTags(), b"\x01\x00\x01\x00"),  # one tag: number 0, one byte, null
        (NullTags(numbers=None), b"\x02\x00\x01\x00\x01\x01\x00"),  # both of them null
        (NullTags(part=Part(number=7), numbers=[5]), b"\x02\x00\x03\x01\x07\x00\x01\x02\x02\x05"),
    ],
)
def test_null_is_sent_in_a_tag_where_it_does_not_mean_absent(tagged: NullTags, encoded: bytes) -> None:
    """As Kafka's ConsumerGroupMemberMetadataValue has it: there the struct follows a byte, 1 or for null 0."""
    assert encode(tagged, 0) == encoded
    assert decode(NullTags, 0, encoded) == tagged


def test_unknown_tags_are_skipped_wherever_they_stand() -> None:
    """In a struct without known tags (ApiVersionsRequest) and beside known ones (FetchRequest), of any size."""
    long_tag = b"\xff\xff\xff\xff\x0f" + b"\x80\x01" + bytes(128)  # tag 2**32 - 1, 128 bytes
    request = ApiVersionsRequest(client_software_name="n", client_software_version="v")
    encoded = encode(request, 3)
    assert decode(ApiVersionsRequest, 3, encoded[:-1] + b"\x02\x07\x00" + long_tag) == request
    fetch = FetchRequest(max_wait_ms=1, min_bytes=2, topics=[], cluster_id="ab")
    encoded = encode(fetch, 12)
    assert encoded.endswith(b"\x01\x00\x03\x03ab")
    known = b"\x00\x03\x03ab"
    assert decode(FetchRequest, 12, encoded[:-6] + b"\x03" + known + b"\x09\x01x" + long_tag) == fetch


def test_more_than_127_unknown_tags_are_skipped() -> None:
    request = ApiVersionsRequest(client_software_name="n", client_software_version="v")
    tags = b"\xac\x02" + b"".join(bytes([*sevens(tag), 1, 0]) for tag in range(10, 310))
    assert decode(ApiVersionsRequest, 3, encode(request, 3)[:-1] + tags) == request


def sevens(value: int) -> list[int]:
    return [value] if value < 128 else [value & 127 | 128, value >> 7]


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        (b"\x01\x00\x02\x03ab", "another size"),  # cluster_id says 2 bytes and has 3
        (b"\x01\x00\x04\x03ab\x00", "another size"),
        (b"\x01\x07\x05\x00", "ends beyond"),  # an unknown tag longer than what is left
        (b"\x01\x00\xff\xff\xff\xff\x0f", "ends beyond"),
        (b"\xff\xff\xff\xff\x0f", "out of bounds"),  # four thousand million tags
        (b"\x01\x00\x01\xff\xff\xff\xff\x7f", "more than 32 bits"),
        (b"\x01\x07\x00\x00", "byte"),
    ],
)
def test_contradictory_tags_are_malformed(tags: bytes, why: str) -> None:
    encoded = encode(FetchRequest(max_wait_ms=1, min_bytes=2, topics=[]), 12)
    with pytest.raises(MalformedMessage, match=why):
        decode(FetchRequest, 12, encoded[:-1] + tags)


# ------------------------------------------------------------------------------------------------- nullable structs
def test_a_nullable_struct_has_a_byte_before_it() -> None:
    request = DescribeTopicPartitionsRequest(topics=[])
    assert encode(request, 0) == b"\x01\x00\x00\x07\xd0\xff\x00"
    request.cursor = Cursor(topic_name="t", partition_index=5)
    assert encode(request, 0) == b"\x01\x00\x00\x07\xd0\x01\x02t\x00\x00\x00\x05\x00\x00"
    assert decode(DescribeTopicPartitionsRequest, 0, encode(request, 0)) == request


# ------------------------------------------------------------------------------------------------- bad bytes
I32_MAX = b"\x7f\xff\xff\xff"


@pytest.mark.parametrize(
    ("cls", "version", "data", "why"),
    [
        (InitProducerIdRequest, 0, b"\xff\xfe" + bytes(4), "length -2"),
        (InitProducerIdRequest, 0, b"\x80\x00" + bytes(4), "length -32768"),
        (InitProducerIdRequest, 0, b"\x00\x02\xc3\x28" + bytes(4), "utf-8"),
        (InitProducerIdRequest, 2, b"\x02\x80" + bytes(5), "utf-8"),
        (InitProducerIdRequest, 2, b"\x80\x80\x80\x80\x10", "more than 32 bits"),
        (InitProducerIdRequest, 2, b"\x80\x80\x80\x80\x80\x00", "more than 32 bits"),
        (InitProducerIdRequest, 2, b"\x81\x80\x02" + bytes(32773), "a string of 32768 bytes"),
        (MetadataRequest, 0, b"\xff\xff\xff\xff", "length -1"),
        (MetadataRequest, 1, b"\xff\xff\xff\xfe", "length -2"),
        (MetadataRequest, 0, I32_MAX, "2147483647 elements"),
        (MetadataRequest, 0, b"\x00\x00\x00\x03\x00\x01a\x00", "topics has 3 elements of at least 2 bytes in 4 bytes"),
        (MetadataRequest, 9, b"\xff\xff\xff\xff\x0f" + bytes(20), "4294967294 elements"),
        (ApiVersionsRequest, 3, b"\x00\x02v\x00", "length -1"),
        (ProduceRequest, 3, b"\xff\xff" + bytes(6) + I32_MAX + bytes(100), "elements"),
    ],
)
def test_bad_lengths_are_malformed(cls: type[Message], version: int, data: bytes, why: str) -> None:
    with pytest.raises(MalformedMessage, match=why):
        decode(cls, version, data)


def test_a_count_of_numbers_larger_than_the_rest_is_malformed() -> None:
    """Lists of int32 are unpacked in one go, so their count is the one that could allocate."""
    head = encode(MetadataResponse(brokers=[], topics=[]), 0)[:-4]
    partition = b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"  # error code, index, leader
    data = head + b"\x00\x00\x00\x01\x00\x00\x00\x01t\x00\x00\x00\x01" + partition + b"\x1f\xff\xff\xff" + bytes(20)
    with pytest.raises(MalformedMessage, match="replica_nodes has 536870911 elements of at least 4 bytes"):
        decode(MetadataResponse, 0, data)


def test_an_undeclared_version_is_our_mistake_and_not_the_peers() -> None:
    for version in (2, 14, -1):
        with pytest.raises(ValueError, match="ProduceRequest is declared for versions 3 to 13"):
            decode(ProduceRequest, version, b"")
        with pytest.raises(ValueError, match="ProduceRequest is declared for versions 3 to 13"):
            encode(produce(b""), version)


# ------------------------------------------------------------------------------------------------- bad values
def metadata(name: Any = "t", topic_id: uuid = bytes(16)) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name, topic_id=topic_id)])


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (MetadataRequest(topics=None), 0),  # null where it may not be null yet
        (metadata(name=None), 8),
        (metadata(name=None), 9),
        (metadata(topic_id=b"short"), 10),
        (metadata(name="x" * 32768), 8),
        (metadata(name="x" * 32768), 9),
        (metadata(name="\ud800"), 9),  # half of a surrogate pair
        (metadata(name=7), 9),
        (InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31), 0),
    ],
)
def test_a_value_that_the_version_cannot_carry_is_refused(message: Message, version: int) -> None:
    with pytest.raises(ValueError, match=f"^{type(message).__name__} v{version}: "):
        encode(message, version)


@pytest.mark.parametrize("version", [8, 9])
def test_the_longest_string_comes_back(version: int) -> None:
    message = metadata(name="x" * 32767)
    assert decode(MetadataRequest, version, encode(message, version)) == message


# ------------------------------------------------------------------------------------------------- generated source
def test_a_traceback_shows_the_generated_line() -> None:
    with pytest.raises(MalformedMessage) as raised:
        decode(ProduceRequest, 9, b"\x00\x00")
    cause = raised.value.__cause__
    assert cause is not None
    linecache.checkcache()
    assert "message.acks, message.timeout_ms, n2 = unpack_hiB(buf, pos)" in "".join(traceback.format_exception(cause))
