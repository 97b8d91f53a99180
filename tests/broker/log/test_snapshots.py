"""Producer snapshots: bytes made by hand, any producers there and back, and no damage that goes unnoticed.

What a snapshot cannot hold is shown, too: the last batch's timestamp is that of the producer, as in Kafka.
"""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.log.markers import Marker
from odradek.broker.log.producers import BATCHES_KEPT, SEQUENCE_MAX, OpenTxn, ProducedBatch, Producers, ProducerState
from odradek.broker.log.snapshots import (
    CorruptSnapshot,
    SnapshotEntry,
    decode_snapshot,
    encode_snapshot,
    read_entries,
)
from odradek.protocol.batches.batch import BatchHeader, pack_batch, read_header
from odradek.protocol.batches.crc32c import crc32c

T0 = 1_700_000_000_000

Known = tuple[int, int, int, int, list[tuple[int, ...]]]


def known(producers: Producers) -> dict[int, Known]:
    """All that counts, by producer id."""
    return {
        producer_id: (
            state.epoch,
            state.last_timestamp_ms,
            state.coordinator_epoch,
            state.current_txn_first_offset,
            [tuple(batch) for batch in state.batches],
        )
        for producer_id, state in producers.states()
    }


def state(
    epoch: int, *batches: tuple[int, int, int, int, int], coordinator_epoch: int = -1, txn_first_offset: int = -1
) -> ProducerState:
    made = ProducerState(epoch)
    made.batches.extend(map(ProducedBatch._make, batches))
    made.last_timestamp_ms = batches[-1][-1] if batches else -1
    made.coordinator_epoch = coordinator_epoch
    made.current_txn_first_offset = txn_first_offset
    return made


KAFKA_S_PART = bytes.fromhex(
    "00000002"  # 2 producers
    "0000000000000fa1 0002 00000010 000000000000003c 00000003 0000018bcfe56800 00000007 0000000000000032"
    # 4001, epoch 2, last sequence 16, last offset 60 with 3 before it in its batch, time, coordinator 7, open since 50
    "0000000000000fa2 0000 ffffffff ffffffffffffffff 00000000 0000018bcfe56801 00000001 ffffffffffffffff"
    # 4002, epoch 0, no batch under it, none open
)
OUR_PART = bytes.fromhex(
    "00000001"  # 1 earlier batch
    "0000000000000fa1 0000000a 0000000c 0000000000000032 0000000000000034 0000018bcfe567f0"
    # of 4001: sequences 10 to 12, offsets 50 to 52
)


def file_of(content: bytes, version: int = 1) -> bytes:
    return pack(">hI", version, crc32c(content)) + content


GOLDEN = file_of(KAFKA_S_PART + OUR_PART)


def golden_producers() -> Producers:
    first = state(2, (10, 12, 50, 52, T0 - 16), (13, 16, 57, 60, T0), coordinator_epoch=7, txn_first_offset=50)
    second = state(0, coordinator_epoch=1)
    second.last_timestamp_ms = T0 + 1
    return Producers([(4001, first), (4002, second)])


def test_the_bytes_made_by_hand_are_written_and_read() -> None:
    assert GOLDEN[:2] == b"\x00\x01"
    assert encode_snapshot(golden_producers()) == GOLDEN
    assert known(decode_snapshot(GOLDEN)) == known(golden_producers())


def test_what_kafka_wrote_lacks_the_earlier_batches() -> None:
    producers = decode_snapshot(file_of(KAFKA_S_PART))
    expected = known(golden_producers())
    assert expected[4001][-1].pop(0)
    assert known(producers) == expected
    assert encode_snapshot(producers) == file_of(KAFKA_S_PART)
    entries, earlier = read_entries(GOLDEN)
    assert entries == [
        SnapshotEntry(4001, 2, 16, 60, 3, T0, 7, 50),
        SnapshotEntry(4002, 0, -1, -1, 0, T0 + 1, 1, -1),
    ]
    assert earlier == [(4001, ProducedBatch(10, 12, 50, 52, T0 - 16))]


def test_no_producers_take_ten_bytes() -> None:
    data = encode_snapshot(Producers())
    assert data == file_of(bytes(4))
    assert len(decode_snapshot(data)) == 0


def test_an_open_transaction_holds_readers_back_after_the_restart_too() -> None:
    producers = decode_snapshot(GOLDEN)
    assert producers.first_unstable_offset == 50
    assert producers.oldest_open_txn == OpenTxn(4001, 2, 50, T0), "since its last batch, for all that is known"
    completed = producers.update(marker_header(4001, 2), 70, Marker(True, 8))
    assert completed is not None
    assert completed[:3] == (4001, 50, 70)


def marker_header(producer_id: int, epoch: int) -> BatchHeader:
    return read_header(
        pack_batch(
            record_count=1,
            last_offset_delta=0,
            base_timestamp=T0,
            max_timestamp=T0,
            producer_id=producer_id,
            producer_epoch=epoch,
            is_transactional=True,
            is_control=True,
        )
    )


def test_a_timestamp_of_a_marker_stands_for_that_of_the_last_batch() -> None:
    """Kafka's row has one timestamp for the producer, and so for the batch. It is told to those who send it again."""
    one = state(0, (0, 0, 5, 5, T0))
    one.last_timestamp_ms = T0 + 9
    again = decode_snapshot(encode_snapshot(Producers([(1, one)])))
    assert known(again)[1] == (0, T0 + 9, -1, -1, [(0, 0, 5, 5, T0 + 9)])


# -- any producers ----------------------------------------------------------------------------------------------------

OFFSETS = st.integers(0, 2**62)


@st.composite
def states(draw: st.DrawFn) -> ProducerState:
    """Up to five batches with rising offsets whose sequences may cross the border, and then perhaps a marker."""
    made = ProducerState(draw(st.integers(0, 2**15 - 1)))
    offset = draw(OFFSETS)
    sequence = draw(st.one_of(st.integers(0, SEQUENCE_MAX), st.integers(SEQUENCE_MAX - 5, SEQUENCE_MAX)))
    timestamp_ms = draw(st.integers(-1, 2**62))
    for _ in range(draw(st.integers(0, BATCHES_KEPT))):
        delta = draw(st.one_of(st.integers(0, 9), st.integers(0, SEQUENCE_MAX)))
        last_sequence = (sequence + delta) % 2**31
        timestamp_ms = draw(st.integers(-1, 2**62))
        made.batches.append(ProducedBatch(sequence, last_sequence, offset, offset + delta, timestamp_ms))
        offset += delta + draw(st.integers(1, 2**20))
        sequence = (last_sequence + 1) % 2**31
    made.last_timestamp_ms = timestamp_ms
    made.coordinator_epoch = draw(st.integers(-1, 2**31 - 1))
    return made


@st.composite
def any_producers(draw: st.DrawFn) -> Producers:
    """Some of them have a transaction open, each from another offset on."""
    found = draw(st.dictionaries(st.integers(0, 2**63 - 1), states(), max_size=6))
    opened = draw(st.lists(OFFSETS, unique=True, max_size=len(found)))
    for made, offset in zip(found.values(), opened, strict=False):
        made.current_txn_first_offset = offset
    return Producers(found.items())


@given(producers=any_producers())
def test_any_producers_are_the_same_again(producers: Producers) -> None:
    data = encode_snapshot(producers)
    again = decode_snapshot(data)
    assert known(again) == known(producers)
    assert again.first_unstable_offset == producers.first_unstable_offset
    assert encode_snapshot(again) == data


@given(producers=any_producers())
def test_kafka_s_part_says_what_kafka_would_write(producers: Producers) -> None:
    """Of each producer its last batch, under the names of ProducerSnapshot.json."""
    entries, earlier = read_entries(encode_snapshot(producers))
    for (producer_id, made), entry in zip(producers.states(), entries, strict=True):
        last = made.batches[-1] if made.batches else None
        assert entry == SnapshotEntry(
            producer_id,
            made.epoch,
            last.last_sequence if last else -1,
            last.last_offset if last else -1,
            last.last_offset - last.base_offset if last else 0,
            made.last_timestamp_ms,
            made.coordinator_epoch,
            made.current_txn_first_offset,
        )
    assert len(earlier) == sum(max(0, len(made.batches) - 1) for _, made in producers.states())


# -- damage -----------------------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_noticed() -> None:
    for position in range(len(GOLDEN)):
        for bit in range(8):
            broken = GOLDEN[:position] + bytes([GOLDEN[position] ^ 1 << bit]) + GOLDEN[position + 1 :]
            with pytest.raises(CorruptSnapshot):
                decode_snapshot(broken)


def test_every_truncation_and_every_addition_is_noticed() -> None:
    for size in range(len(GOLDEN)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(GOLDEN[:size])
    for more in (b"\0", bytes(3), bytes(4), bytes(4096)):
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(GOLDEN + more)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (bytes.fromhex("ffffffff"), "-1 entries"),
        (bytes.fromhex("7fffffff") + KAFKA_S_PART[4:], "2147483647 entries do not fit"),
        (KAFKA_S_PART[:4] + KAFKA_S_PART[4:54], "2 entries do not fit"),
        (KAFKA_S_PART + b"\0\0\0", "ends within the count"),
        (KAFKA_S_PART + bytes.fromhex("00000002") + OUR_PART[4:], "2 entries do not fit"),
        (KAFKA_S_PART + bytes.fromhex("80000000"), "entries do not fit"),
        (KAFKA_S_PART + OUR_PART + b"\0", "1 bytes too many"),
    ],
)
def test_counts_that_cannot_be_are_noticed_though_the_checksum_holds(content: bytes, why: str) -> None:
    with pytest.raises(CorruptSnapshot, match=why):
        decode_snapshot(file_of(content))


@pytest.mark.parametrize("version", [0, 2, -1])
def test_only_one_version_is_known(version: int) -> None:
    with pytest.raises(CorruptSnapshot, match=f"version {version}; only 1 is known"):
        decode_snapshot(file_of(KAFKA_S_PART, version))


@given(data=st.binary(max_size=200))
def test_noise_is_corrupt_and_raises_nothing_else(data: bytes) -> None:
    for content in (data, b"\x00\x01" + data, file_of(data)):
        try:
            decode_snapshot(content)
        except CorruptSnapshot:
            continue
        assert content == file_of(data)
