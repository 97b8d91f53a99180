"""Records that are the newest of their keys, known by their offsets: a round that knows them comes to what one comes to
that looks each key up, and unpacks only what it has to.
"""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.log import compaction, offset_map
from odradek.broker.log.compaction import Cleaning, LastRecord
from odradek.broker.log.offset_map import SLOT_BYTES, Newest, OffsetMap, OffsetMapBuilder, count_newest
from odradek.broker.log.producers import AbortedTxn
from odradek.protocol.batches.batch import BatchHeader, read_header
from odradek.protocol.batches.records import unpack_records
from odradek.protocol.primitives import Buffer
from tests.broker.log.compacted_logs import KeyValue, data_batch, marker_batch
from tests.broker.log.logs import T0

RECORDS: st.SearchStrategy[list[KeyValue]] = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"d"]) | st.none(), st.sampled_from([b"1", b"2"]) | st.none()),
    min_size=1,
    max_size=4,
)


@dataclass
class Built:
    offset_map: OffsetMap
    newest: Newest


def built(batches: list[bytes], *, first_dirty_offset: int = 0, keys_max: int = 100, rows: int = 0) -> Built:
    found = OffsetMap(first_dirty_offset, keys_max * SLOT_BYTES, load_factor=1.0)
    builder = OffsetMapBuilder(found)
    builder.add_aborted([AbortedTxn(9, row, row + 1, row) for row in range(rows)])
    for data in batches:
        if not builder.feed(read_header(data), data):
            break
    return Built(found, builder.complete())


def cleaned(batches: list[bytes], round_: Built, *, knows: bool, rows: int = 0) -> tuple[list[bytes | None], list[int]]:
    cleaning = Cleaning(
        round_.offset_map,
        {7: LastRecord(0, 0)},
        log_start_offset=0,
        first_uncleanable_offset=1 << 40,
        delete_retention_ms=1000,
        now_ms=T0,
        newest=round_.newest if knows else None,
    )
    cleaning.add_aborted([AbortedTxn(9, row, row + 1, row) for row in range(rows)])
    kept = [None if (out := cleaning.feed(read_header(data), data)) is None else bytes(out) for data in batches]
    return kept, [cleaning.records_read, cleaning.records_kept, cleaning.bytes_kept, cleaning.keyless_records]


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """Batches with gaps between them, some of which have lost records to an earlier round."""
    batches: list[bytes] = []
    offset = 0
    for records in draw(st.lists(RECORDS, min_size=1, max_size=8)):
        offset += draw(st.sampled_from([0, 0, 0, 1, 50]))
        sequence = draw(st.sampled_from([-1, 0]))
        producer = (7, 0, sequence) if sequence >= 0 else (-1, -1, -1)
        batches.append(data_batch(offset, *records, timestamp_ms=T0, producer=producer))
        offset = read_header(batches[-1]).last_offset + 1
    if draw(st.booleans()):
        kept, _ = cleaned(batches, built(batches[: draw(st.integers(0, len(batches)))]), knows=False)
        batches = [data for data in kept if data is not None]
    return batches


@given(logs(), st.integers(0, 30), st.integers(1, 5), st.sampled_from([0, 3, 1 << 20]))
@settings(max_examples=300, deadline=None)
def test_a_round_comes_to_the_same_whether_it_knows_them_or_not(
    batches: list[bytes], first_dirty_offset: int, keys_max: int, offsets_max: int
) -> None:
    """Whatever is dirty, however few keys the map has room for, and wherever the offsets end of which it is known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offset_map, "NEWEST_OFFSETS_MAX", offsets_max)
        round_ = built(batches, first_dirty_offset=first_dirty_offset, keys_max=keys_max)
    assert cleaned(batches, round_, knows=True) == cleaned(batches, round_, knows=False)


def test_transactions_are_what_they_are_known_or_not() -> None:
    batches = [
        data_batch(0, (b"a", b"1"), producer=(9, 0, 0), is_transactional=True),
        marker_batch(1, 9, 0, is_commit=False),
        data_batch(2, (b"a", b"2")),
    ]
    round_ = built(batches, rows=1)
    assert cleaned(batches, round_, knows=True, rows=1) == cleaned(batches, round_, knows=False, rows=1)
    assert round_.newest.of(read_header(batches[0])) is None


def test_of_plain_batches_each_record_is_known() -> None:
    batches = [data_batch(0, (b"a", b"1"), (b"b", b"1")), data_batch(2, (b"a", b"2"), (b"a", b"3"), (b"c", b"1"))]
    newest = built(batches).newest
    flags = [newest.of(read_header(data)) for data in batches]
    assert [None if each is None else [number & 1 for number in each] for each in flags] == [[0, 1], [0, 1, 1]]
    assert [count_newest(each) for each in flags if each is not None] == [1, 2]


def sparse() -> bytes:
    """A batch that has lost its first record to an earlier round."""
    batches = [data_batch(5, (b"a", b"1"), (b"b", b"1")), data_batch(7, (b"a", b"2"))]
    (kept, _), _ = cleaned(batches, built(batches), knows=False)
    assert kept is not None
    return kept


@pytest.mark.parametrize(
    "data",
    [
        data_batch(5, (b"a", b"1"), (b"b", None)),
        data_batch(5, (b"a", b"1"), (None, b"1")),
        data_batch(3, (b"a", b"1"), (b"b", b"1"), (b"c", b"1")),
        sparse(),
    ],
    ids=["a tombstone", "no key", "not dirty from its start", "an offset is missing"],
)
def test_of_others_only_the_map_tells(data: bytes) -> None:
    assert built([data], first_dirty_offset=4).newest.of(read_header(data)) is None


def test_batches_all_or_nothing_of_which_stays_are_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [data_batch(offset, (b"%d" % (offset % 6), b"x"), (b"y%d" % offset, b"x")) for offset in (0, 2, 4)]
    batches += [data_batch(offset, (b"%d" % (offset % 6), b"x")) for offset in (6, 8, 10)]
    gone = data_batch(12, (b"z", b"1"))
    batches += [gone, data_batch(13, (b"z", b"2"))]
    round_ = built(batches)
    unpacked: list[int] = []

    def noted(data: Buffer, header: BatchHeader) -> bytes:
        unpacked.append(header.base_offset)
        return unpack_records(data, header)

    monkeypatch.setattr(compaction, "unpack_records", noted)
    kept, _ = cleaned(batches, round_, knows=True)
    assert unpacked == [0, 2, 4]
    assert kept[3:] == [*batches[3:6], None, batches[7]]
