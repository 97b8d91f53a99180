"""The fixed layout is read as the codec reads it, and everything else is left to the codec."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.stored.group_records import decode_key, decode_value, encode_key, encode_value
from odradek.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.stored.plain_offset_commit import PlainOffsetCommit, read_plain_offset_commit

NAMES = st.text(max_size=40) | st.text("a", min_size=130, max_size=140)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
KEYS = st.builds(OffsetCommitKey, group=NAMES, topic=NAMES, partition=INT32)
IDS = st.binary(min_size=16, max_size=16).filter(any)
PLAIN = st.builds(
    OffsetCommitValue, offset=INT64, leader_epoch=INT32, metadata=st.just(""), commit_timestamp=INT64, topic_id=IDS
)
ANY = st.builds(
    OffsetCommitValue,
    offset=INT64,
    leader_epoch=INT32,
    metadata=st.text(max_size=3),
    commit_timestamp=INT64,
    topic_id=st.just(bytes(16)) | IDS,
)

KEY = encode_key(OffsetCommitKey(group="gr", topic="to", partition=3))
VALUE = encode_value(OffsetCommitValue(offset=1, metadata="", commit_timestamp=2, topic_id=b"\x07" * 16), 4)


def by_the_codec(key_bytes: bytes, value_bytes: bytes) -> PlainOffsetCommit | None:
    """None for what is damaged, of another type, or not plain."""
    try:
        key = decode_key(key_bytes)
        if not isinstance(key, OffsetCommitKey):
            return None
        value = decode_value(key, value_bytes)
    except MalformedMessage:
        return None
    if not isinstance(value, OffsetCommitValue) or value.metadata or value.expire_timestamp != -1:
        return None
    position = (key.topic, key.partition)
    return key.group, position, value.offset, value.leader_epoch, value.commit_timestamp, value.topic_id


@given(KEYS, PLAIN)
def test_what_a_broker_writes_without_metadata_is_read(key: OffsetCommitKey, value: OffsetCommitValue) -> None:
    data = encode_key(key), encode_value(value, 4)
    found = read_plain_offset_commit(*data)
    assert found is not None
    assert found == by_the_codec(*data)


@given(KEYS, ANY, st.integers(0, 4))
def test_any_offset_is_read_as_by_the_codec_or_left(
    key: OffsetCommitKey, value: OffsetCommitValue, version: int
) -> None:
    data = encode_key(key), encode_value(value, version)
    assert read_plain_offset_commit(*data) in (None, by_the_codec(*data))


LOOKS_PLAIN = "x" * 8 + "\x01\x00\x10" + "x" * 7
"""Metadata with which a value without a topic id has 42 bytes, and in the right places what stands before one."""


def test_metadata_that_looks_like_a_topic_id_is_left_to_the_codec() -> None:
    value = OffsetCommitValue(offset=1, metadata=LOOKS_PLAIN, commit_timestamp=2)
    assert len(encode_value(value, 4)) == 42
    assert read_plain_offset_commit(KEY, encode_value(value, 4)) is None


def test_any_byte_that_is_changed_is_read_as_by_the_codec_or_left() -> None:
    for part in (KEY, VALUE):
        for index in range(len(part)):
            for byte in range(256):
                changed = part[:index] + bytes((byte,)) + part[index + 1 :]
                data = (changed, VALUE) if part is KEY else (KEY, changed)
                assert read_plain_offset_commit(*data) in (None, by_the_codec(*data)), (index, byte)


NEGATIVE = (b"\0\1\xff\xf4gr\0\2to\0\0\0\3", b"\0\1\0\2gr\xff\xfa\0\0\0\3")
"""Keys whose first or second string has a negative size, which counted from the end finds all that a key needs."""


def test_a_string_of_a_negative_size_is_left_to_the_codec() -> None:
    for key in NEGATIVE:
        assert by_the_codec(key, VALUE) is None
        assert read_plain_offset_commit(key, VALUE) is None, key


def test_what_is_cut_or_longer_is_read_as_by_the_codec_or_left() -> None:
    for key in (*(KEY[:size] for size in range(len(KEY))), KEY + b"\0"):
        assert read_plain_offset_commit(key, VALUE) in (None, by_the_codec(key, VALUE))
    for value in (*(VALUE[:size] for size in range(len(VALUE))), VALUE + b"\0"):
        assert read_plain_offset_commit(KEY, value) in (None, by_the_codec(KEY, value))


def test_groups_positions_and_topic_ids_that_come_again_are_the_same_objects() -> None:
    found = [
        read_plain_offset_commit(
            encode_key(OffsetCommitKey(group="billing", topic="orders", partition=300)),
            encode_value(OffsetCommitValue(offset=number, metadata="", commit_timestamp=0, topic_id=b"\x07" * 16), 4),
        )
        for number in range(2)
    ]
    first, second = found
    assert first is not None
    assert second is not None
    assert [first[index] is second[index] for index in (0, 1, 5)] == [True] * 3
