"""The header of a batch: fields against bytes written by hand, what a leader accepts from a client, and walking a log.

Batches come from `plain.batch`, whose encoder shares no code with ours.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.batches.batch import (
    CRC_RANGE_START,
    HEADER_SIZE,
    BatchHeader,
    check_batch,
    crc_matches,
    is_of_transaction,
    iterate_batches,
    pack_batch,
    patched_prefix,
    read_header,
    rebuild_batch,
)
from odradek.protocol.batches.compression import Codec
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from tests.protocol import plain

GOOD = plain.batch()
THREE = tuple(plain.record(delta) for delta in range(3))

int16 = st.integers(-(1 << 15), (1 << 15) - 1)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
fields = st.fixed_dictionaries(
    {
        "base_offset": int64,
        "leader_epoch": int32,
        "attributes": int16,
        "last_offset_delta": int32,
        "base_timestamp": int64,
        "max_timestamp": int64,
        "producer_id": int64,
        "producer_epoch": int16,
        "base_sequence": int32,
        "record_count": int32,
    }
)


def refusal(view: bytes) -> ErrorCode:
    """The code with which `check_batch` refuses the bytes."""
    with pytest.raises(KafkaError) as caught:
        check_batch(memoryview(view))
    return caught.value.code


# ------------------------------------------------------------------------------------------------------ the header


def test_every_field_is_read_from_its_place() -> None:
    written_by_hand = bytes.fromhex(
        "0000000000000102"  # base_offset
        "00000031"  # batch_length: 49, a header without records
        "00000003"  # partition_leader_epoch
        "02"  # magic
        "f0e1d2c3"  # crc
        "0034"  # attributes: control, transactional, zstd
        "00000005"  # last_offset_delta
        "0000000000000600"  # base_timestamp
        "0000000000000700"  # max_timestamp
        "0000000000000800"  # producer_id
        "0009"  # producer_epoch
        "0000000a"  # base_sequence
        "0000000b"  # record_count
    )
    header = read_header(b"_" + written_by_hand, 1)
    assert header == BatchHeader(
        base_offset=0x102,
        batch_length=49,
        partition_leader_epoch=3,
        magic=2,
        crc=0xF0E1D2C3,
        attributes=0x34,
        last_offset_delta=5,
        base_timestamp=0x600,
        max_timestamp=0x700,
        producer_id=0x800,
        producer_epoch=9,
        base_sequence=10,
        record_count=11,
    )
    assert (header.size_bytes, header.last_offset, header.last_sequence) == (61, 0x107, 15)


@pytest.mark.parametrize("attributes", [0x00, 0x0F, 0x10, 0x30, 0x1000])
def test_a_look_at_a_batch_tells_whether_it_is_of_a_transaction(attributes: int) -> None:
    batch = plain.batch(attributes=attributes)
    assert is_of_transaction(batch) is read_header(batch).is_transactional is (attributes & 0x10 != 0)
    assert not is_of_transaction(batch[: HEADER_SIZE - 1])
    assert not is_of_transaction(plain.batch(attributes=attributes, magic=1))


@given(fields)
def test_any_values_are_read_as_they_were_written(given_fields: dict[str, int]) -> None:
    header = read_header(plain.batch((), **given_fields, payload=b"12345"))
    expected = given_fields | {"partition_leader_epoch": given_fields["leader_epoch"], "magic": 2, "batch_length": 54}
    del expected["leader_epoch"]
    assert header._asdict() == expected | {"crc": header.crc}


@pytest.mark.parametrize("size", [0, 1, 60])
def test_a_header_that_is_cut_is_malformed(size: int) -> None:
    with pytest.raises(MalformedMessage):
        read_header(GOOD[:size])


@pytest.mark.parametrize("position", [-1, 1, len(GOOD), 1 << 40])
def test_a_header_must_lie_inside_of_the_buffer(position: int) -> None:
    with pytest.raises(MalformedMessage):
        read_header(GOOD[:HEADER_SIZE], position)


@pytest.mark.parametrize(
    ("attributes", "codec", "flags"),
    [
        (0x00, Codec.NONE, (False, False, False)),
        (0x01, Codec.GZIP, (False, False, False)),
        (0x02, Codec.SNAPPY, (False, False, False)),
        (0x03, Codec.LZ4, (False, False, False)),
        (0x04, Codec.ZSTD, (False, False, False)),
        (0x08, Codec.NONE, (True, False, False)),
        (0x10, Codec.NONE, (False, True, False)),
        (0x20, Codec.NONE, (False, False, True)),
        (-0x8000 + 0x3C, Codec.ZSTD, (True, True, True)),
    ],
)
def test_attributes(attributes: int, codec: Codec, flags: tuple[bool, bool, bool]) -> None:
    header = read_header(plain.batch(attributes=attributes))
    assert header.codec is codec
    assert (header.is_log_append_time, header.is_transactional, header.is_control) == flags


@pytest.mark.parametrize(
    ("base_sequence", "last_offset_delta", "last_sequence"),
    [
        (-1, 4, -1),
        (0, 0, 0),
        (7, 4, 11),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31 - 1, 1, 0),  # DefaultRecordBatch.incrementSequence
        (2**31 - 3, 9, 6),
    ],
)
def test_the_last_sequence_wraps_after_the_largest(
    base_sequence: int, last_offset_delta: int, last_sequence: int
) -> None:
    header = read_header(plain.batch(base_sequence=base_sequence, last_offset_delta=last_offset_delta))
    assert header.last_sequence == last_sequence


@given(fields, st.sampled_from(Codec), st.booleans(), st.booleans(), st.lists(st.binary(max_size=20), max_size=3))
def test_packing_equals_the_plain_encoder(
    given_fields: dict[str, int], codec: Codec, is_transactional: bool, is_control: bool, parts: list[bytes]
) -> None:
    del given_fields["attributes"]
    packed = pack_batch(*parts, codec=codec, is_transactional=is_transactional, is_control=is_control, **given_fields)
    attributes = codec + 0x10 * is_transactional + 0x20 * is_control
    assert packed == plain.batch((), payload=b"".join(parts), attributes=attributes, **given_fields)
    assert crc_matches(packed)


# -------------------------------------------------------------------------------------------- what a leader accepts


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(plain.batch(), id="one record"),
        pytest.param(plain.batch(THREE), id="three records"),
        pytest.param(plain.batch(leader_epoch=77), id="any leader epoch"),
        pytest.param(plain.batch(THREE, producer_id=0, producer_epoch=0, base_sequence=0), id="idempotent"),
        pytest.param(
            plain.batch(THREE, producer_id=5, producer_epoch=32767, base_sequence=2**31 - 1), id="sequence wraps"
        ),
        pytest.param(plain.batch(attributes=0x10, producer_id=5, producer_epoch=0, base_sequence=0), id="transaction"),
        pytest.param(plain.batch(payload=b"?", attributes=4, record_count=1000), id="compressed: content unknown"),
        pytest.param(plain.batch(payload=bytes(7 * 1000), record_count=1000), id="1000 smallest records"),
        pytest.param(plain.batch(base_timestamp=-1, max_timestamp=-1), id="no timestamps"),
    ],
)
def test_good_batches_are_accepted(batch: bytes) -> None:
    assert check_batch(memoryview(batch)) == read_header(batch)


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="nothing"),
        pytest.param(GOOD[:11], ErrorCode.INVALID_RECORD, id="less than a length"),
        pytest.param(GOOD[:16], ErrorCode.INVALID_RECORD, id="no magic yet"),
        pytest.param(GOOD[:17], ErrorCode.INVALID_RECORD, id="nothing after the magic"),
        pytest.param(GOOD[:60], ErrorCode.INVALID_RECORD, id="less than a header"),
        pytest.param(GOOD[:-1], ErrorCode.INVALID_RECORD, id="cut"),
        pytest.param(GOOD + b"\x00", ErrorCode.INVALID_RECORD, id="a byte too many"),
        pytest.param(GOOD + GOOD, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(plain.batch(magic=0), ErrorCode.INVALID_RECORD, id="magic 0"),
        pytest.param(plain.batch(magic=1), ErrorCode.INVALID_RECORD, id="magic 1"),
        pytest.param(plain.batch(magic=3), ErrorCode.INVALID_RECORD, id="magic 3"),
        pytest.param(plain.batch(magic=-1), ErrorCode.INVALID_RECORD, id="magic -1"),
        pytest.param(plain.batch(batch_length=48), ErrorCode.CORRUPT_MESSAGE, id="length below the header's"),
        pytest.param(plain.batch(batch_length=-1), ErrorCode.CORRUPT_MESSAGE, id="negative length"),
        pytest.param(plain.batch(batch_length=2**31 - 1), ErrorCode.INVALID_RECORD, id="huge length"),
        pytest.param(plain.batch(crc=0), ErrorCode.CORRUPT_MESSAGE, id="wrong checksum"),
        pytest.param(plain.batch(base_offset=1), ErrorCode.INVALID_RECORD, id="base offset 1"),
        pytest.param(plain.batch(base_offset=-1), ErrorCode.INVALID_RECORD, id="base offset -1"),
        pytest.param(plain.batch((), record_count=0), ErrorCode.INVALID_RECORD, id="no records"),
        pytest.param(
            plain.batch((), record_count=0, last_offset_delta=0), ErrorCode.INVALID_RECORD, id="no records, one offset"
        ),
        pytest.param(plain.batch(record_count=-5), ErrorCode.INVALID_RECORD, id="negative count"),
        pytest.param(plain.batch(THREE, last_offset_delta=1), ErrorCode.INVALID_RECORD, id="fewer offsets"),
        pytest.param(plain.batch(THREE, last_offset_delta=3), ErrorCode.INVALID_RECORD, id="more offsets"),
        pytest.param(plain.batch(THREE, last_offset_delta=-1), ErrorCode.INVALID_RECORD, id="negative offset delta"),
        pytest.param(plain.batch(payload=bytes(6)), ErrorCode.INVALID_RECORD, id="a record in 6 bytes"),
        pytest.param(
            plain.batch(payload=bytes(6999), record_count=1000), ErrorCode.INVALID_RECORD, id="1000 records in 6999 B"
        ),
        pytest.param(plain.batch(attributes=0x20), ErrorCode.INVALID_RECORD, id="control"),
        pytest.param(
            plain.batch(attributes=0x30, producer_id=1, producer_epoch=0, base_sequence=0),
            ErrorCode.INVALID_RECORD,
            id="control in a transaction",
        ),
        pytest.param(plain.batch(attributes=8), ErrorCode.INVALID_TIMESTAMP, id="LogAppendTime"),
        pytest.param(plain.batch(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="codec 5"),
        pytest.param(plain.batch(attributes=7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="codec 7"),
        pytest.param(plain.batch(producer_id=1, producer_epoch=0), ErrorCode.INVALID_RECORD, id="no sequence"),
        pytest.param(plain.batch(producer_id=1, base_sequence=0), ErrorCode.INVALID_RECORD, id="no producer epoch"),
    ],
)
def test_bad_batches_are_refused_with_kafkas_code(batch: bytes, code: ErrorCode) -> None:
    assert refusal(batch) is code


@given(st.integers(CRC_RANGE_START * 8, len(GOOD) * 8 - 1))
def test_every_flipped_bit_after_the_checksum_is_found(bit: int) -> None:
    flipped = bytearray(GOOD)
    flipped[bit // 8] ^= 1 << bit % 8
    assert refusal(bytes(flipped)) is ErrorCode.CORRUPT_MESSAGE


@given(st.integers(0, len(GOOD) * 8 - 1))
def test_a_flipped_bit_passes_only_where_the_leader_writes_its_epoch(bit: int) -> None:
    flipped = bytearray(GOOD)
    flipped[bit // 8] ^= 1 << bit % 8
    if 12 <= bit // 8 < 16:
        check_batch(memoryview(flipped))
    else:
        refusal(bytes(flipped))


@given(st.binary(max_size=200))
def test_random_bytes_give_a_kafka_error(data: bytes) -> None:
    refusal(data)


@given(fields, st.binary(max_size=100))
def test_a_sealed_header_is_accepted_or_gives_a_kafka_error(given_fields: dict[str, int], payload: bytes) -> None:
    """With a right checksum every other rule is reached: no header raises anything but KafkaError."""
    try:
        header = check_batch(memoryview(plain.batch((), **given_fields, payload=payload)))
    except KafkaError:
        return
    assert header.base_offset == 0
    assert header.record_count == header.last_offset_delta + 1


# ------------------------------------------------------------------------------------------ what the leader changes


@given(int64, int32)
def test_the_patched_prefix_sets_offset_and_epoch_and_keeps_the_checksum(base_offset: int, leader_epoch: int) -> None:
    header = check_batch(memoryview(GOOD))
    stored = patched_prefix(header, base_offset, leader_epoch) + GOOD[16:]
    assert read_header(stored) == header._replace(base_offset=base_offset, partition_leader_epoch=leader_epoch)
    assert crc_matches(stored)


@given(
    fields, int64, st.sampled_from(Codec), st.sampled_from(Codec), st.booleans(), st.binary(max_size=30), st.binary()
)
def test_a_rebuilt_batch_is_the_old_one_but_for_what_was_named(
    given_fields: dict[str, int],
    max_timestamp: int,
    codec: Codec,
    before: Codec,
    is_log_append_time: bool,
    payload: bytes,
    other_payload: bytes,
) -> None:
    """Beside a batch of the plain encoder; bits of the attributes that nobody named stay, used or not."""
    others = given_fields.pop("attributes")
    rest = others & ~0x0F
    old = plain.batch((), payload=payload, attributes=rest | before | others & 0x08, **given_fields)
    new = rebuild_batch(
        read_header(old),
        memoryview(other_payload),
        codec=codec,
        max_timestamp=max_timestamp,
        is_log_append_time=is_log_append_time,
    )
    given_fields["max_timestamp"] = max_timestamp
    attributes = rest | codec | 0x08 * is_log_append_time
    assert new == plain.batch((), payload=other_payload, attributes=attributes, **given_fields)


# ------------------------------------------------------------------------------------------------- several in a row


def log_of(*values: bytes) -> bytes:
    return b"".join(plain.batch((plain.record(0, value),), base_offset=at) for at, value in enumerate(values))


@given(st.lists(st.binary(max_size=20), max_size=4), st.data())
def test_whole_batches_are_found_and_a_cut_one_is_not(values: list[bytes], data: st.DataObject) -> None:
    log = log_of(*values)
    size = data.draw(st.integers(0, len(log)))
    ends = [len(log_of(*values[: n + 1])) for n in range(len(values))]
    found = list(iterate_batches(memoryview(log)[:size]))
    assert [header.base_offset for _, header in found] == [n for n, end in enumerate(ends) if end <= size]
    assert [position + header.size_bytes for position, header in found] == [end for end in ends if end <= size]


@pytest.mark.parametrize("damage", [{"magic": 1}, {"batch_length": 48}, {"batch_length": -(2**31)}])
def test_what_is_no_batch_is_malformed_and_not_taken_for_the_end(damage: dict[str, Any]) -> None:
    batches = iterate_batches(GOOD + plain.batch(**damage))
    assert next(batches)[0] == 0
    with pytest.raises(MalformedMessage):
        next(batches)
