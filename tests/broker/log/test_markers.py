"""Transaction markers: bytes made by hand and later versions are read, what is no marker is told apart or refused."""

import pytest

from odradek.broker.log.markers import Marker, read_marker
from odradek.protocol.batches.batch import pack_batch, read_header
from odradek.protocol.batches.compression import Codec, compress
from odradek.protocol.batches.record_encoding import build_batch, encode_records
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import MalformedMessage

T0 = 1_700_000_000_000
ABORT = bytes.fromhex("0000 0000")
COMMIT = bytes.fromhex("0000 0001")
EPOCH_9 = bytes.fromhex("0000 00000009")
GOLDEN = bytes.fromhex(
    "0000000000000011"  # base offset 17
    "00000042"  # length of what follows: 66
    "00000003"  # leader epoch
    "02"  # magic
    "00000000"  # checksum, which is not looked at here
    "0030"  # attributes: transactional, control
    "00000000"  # last offset delta
    "0000018bcfe56800"  # base timestamp
    "0000018bcfe56800"  # max timestamp
    "0000000000000fa1"  # producer id 4001
    "0002"  # producer epoch
    "ffffffff"  # no sequence
    "00000001"  # one record:
    "20"  # 16 bytes
    "00"  # attributes
    "00"  # timestamp delta
    "00"  # offset delta
    "08"  # key of 4 bytes
    "0000"  # version
    "0001"  # type: commit
    "0c"  # value of 6 bytes
    "0000"  # version
    "00000009"  # coordinator's epoch
    "00"  # no headers
)


def control(key: bytes | None, value: bytes | None, codec: Codec = Codec.NONE) -> bytes:
    return build_batch(
        [Record(0, T0, key, value, ())],
        codec=codec,
        producer_id=1,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def test_the_bytes_of_a_commit_marker() -> None:
    header = read_header(GOLDEN)
    assert header.is_control
    assert header.is_transactional
    assert header.size_bytes == len(GOLDEN)
    assert (header.base_offset, header.producer_id, header.producer_epoch) == (17, 4001, 2)
    assert read_marker(GOLDEN) == Marker(is_abort=False, coordinator_epoch=9)
    assert read_marker(memoryview(GOLDEN), header) == Marker(is_abort=False, coordinator_epoch=9)


@pytest.mark.parametrize(("key", "is_abort"), [(ABORT, True), (COMMIT, False)])
@pytest.mark.parametrize("codec", list(Codec))
def test_both_types_in_every_codec(key: bytes, is_abort: bool, codec: Codec) -> None:
    """Kafka never compresses markers. Whoever does is understood."""
    assert read_marker(control(key, EPOCH_9, codec)) == Marker(is_abort, 9)


@pytest.mark.parametrize("epoch", [-1, 0, 2**31 - 1])
def test_any_epoch_of_a_coordinator(epoch: int) -> None:
    value = bytes(2) + epoch.to_bytes(4, "big", signed=True)
    assert read_marker(control(ABORT, value)) == Marker(True, epoch)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\x00\x01\x00\x00", EPOCH_9),
        (ABORT + b"more", EPOCH_9),
        (ABORT, b"\x7f\xff\x00\x00\x00\x09 and what it adds"),
        (b"\x00\x05\x00\x00 tagged", b"\x00\x01\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01"),
    ],
)
def test_what_later_versions_add_is_passed_over(key: bytes, value: bytes) -> None:
    """KIP-890 gave the value a version 1; ControlRecordType.java promises that the key's first fields stay."""
    assert read_marker(control(key, value)) == Marker(True, 9)


@pytest.mark.parametrize("kind", [2, 3, 4, 5, 6, 7, 100, 2**15 - 1, -1, -(2**15)])
def test_other_control_records_end_no_transaction(kind: int) -> None:
    """The raft log has leader changes, snapshot headers and footers, versions, voters (ControlRecordType.java)."""
    assert read_marker(control(bytes(2) + kind.to_bytes(2, "big", signed=True), b"anything")) is None


def test_compaction_leaves_empty_batches_that_end_none() -> None:
    empty = pack_batch(
        record_count=0,
        last_offset_delta=0,
        base_timestamp=T0,
        max_timestamp=T0,
        producer_id=1,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )
    assert read_marker(empty) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, EPOCH_9),
        (b"", EPOCH_9),
        (ABORT[:3], EPOCH_9),
        (ABORT, None),
        (ABORT, b""),
        (COMMIT, EPOCH_9[:5]),
    ],
)
def test_a_key_or_value_that_is_too_short_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(MalformedMessage, match="control batch at offset 0 holds no marker"):
        read_marker(control(key, value))


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\xff\xff\x00\x00", EPOCH_9), (b"\x80\x00\x00\x07", EPOCH_9), (COMMIT, b"\xff\xfe\x00\x00\x00\x09")],
)
def test_versions_below_zero_are_refused(key: bytes, value: bytes) -> None:
    """As ControlRecordType.parseTypeId and EndTransactionMarker.deserializeValue do, whatever the type."""
    with pytest.raises(MalformedMessage, match="holds no marker: version -"):
        read_marker(control(key, value))


def test_records_that_cannot_be_read_are_refused() -> None:
    records = encode_records([Record(0, T0, ABORT, EPOCH_9, ())], 0, T0)
    for payload, codec in ((b"", Codec.NONE), (records[:-3], Codec.NONE), (b"\xff" * 30, Codec.NONE)):
        with pytest.raises(MalformedMessage):
            read_marker(packed(payload, codec))
    for codec in (Codec.GZIP, Codec.ZSTD, Codec.LZ4, Codec.SNAPPY):
        whole = compress(codec, records, None)
        with pytest.raises(MalformedMessage, match="at offset 5"):
            read_marker(packed(b"\xff" + whole[1:], codec))


def packed(payload: bytes, codec: Codec) -> bytes:
    return pack_batch(
        payload,
        record_count=1,
        last_offset_delta=0,
        base_timestamp=T0,
        max_timestamp=T0,
        base_offset=5,
        codec=codec,
        producer_id=1,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def test_every_cut_and_flipped_bit_of_a_marker_is_read_or_refused_as_malformed() -> None:
    """Junk raises MalformedMessage and no other exception: a start and a Fetch meet it as damage."""
    answers: set[Marker | str | None] = set()
    for position in range(61, len(GOLDEN)):
        for bit in range(8):
            broken = GOLDEN[:position] + bytes([GOLDEN[position] ^ 1 << bit]) + GOLDEN[position + 1 :]
            answers.add(answer_to(broken))
        answers.add(answer_to(GOLDEN[:position]))
    assert "refused" in answers
    assert None in answers
    assert Marker(True, 9) in answers, "one bit makes a commit an abort: only the batch's checksum tells"


def answer_to(data: bytes) -> Marker | str | None:
    try:
        return read_marker(data)
    except MalformedMessage:
        return "refused"
