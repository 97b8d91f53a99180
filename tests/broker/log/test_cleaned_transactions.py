"""Which data is aborted and which markers are needed no more: sequences of headers by hand, the index's rows given in
the ways in which segments bring them."""

import pytest

from odradek.broker.log.cleaned_transactions import CleanedTransactions
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.protocol.batches.batch import pack_batch, read_header
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.batches.rewriting import emptied
from tests.broker.log.compacted_logs import data_batch, marker_batch


class Walk:
    """Passes batches one after another."""

    def __init__(self, *txns: AbortedTxn, log_start_offset: int = 0) -> None:
        self.transactions = CleanedTransactions(log_start_offset)
        self.transactions.add_aborted(txns)

    def data(self, offset: int, producer_id: int = 4, *, is_empty: bool = False) -> bool:
        """Whether it is aborted."""
        header = read_header(data_batch(offset, (b"a", b"1"), producer=(producer_id, 0, 0), is_transactional=True))
        return self.transactions.is_aborted(header._replace(record_count=0) if is_empty else header)

    def marker(self, offset: int, producer_id: int = 4, *, is_commit: bool = False, is_empty: bool = False) -> bool:
        """Whether it is needed no more."""
        data = marker_batch(offset, producer_id, 0, is_commit=is_commit)
        data = emptied(read_header(data)) if is_empty else data
        return self.transactions.is_marker_unneeded(read_header(data), data)


TXN = AbortedTxn(4, 10, 20, 10)


def test_data_of_an_aborted_transaction_is_that_of_its_producer_between_its_offsets() -> None:
    walk = Walk(TXN)
    assert [walk.data(9), walk.marker(9, is_commit=True)] == [False, False]
    assert [walk.data(10), walk.data(12), walk.data(13, 5), walk.data(14, is_empty=True)] == [True, True, False, True]
    assert not walk.marker(20)
    assert not walk.data(21)


def test_data_outside_of_transactions_is_never_aborted() -> None:
    walk = Walk(TXN)
    assert not walk.transactions.is_aborted(read_header(data_batch(11, (b"a", b"1"), producer=(4, 0, 0))))
    assert walk.marker(20), "nor does it hold a marker"


def test_markers_are_needed_while_there_is_a_batch_of_their_transaction() -> None:
    walk = Walk(TXN)
    assert walk.marker(0, is_commit=True)
    assert [walk.data(1), walk.marker(2, is_commit=True), walk.marker(3, is_commit=True)] == [False, False, True]
    assert [walk.data(10, is_empty=True), walk.marker(20), walk.marker(21)] == [True, False, True]


def test_rows_stay_as_long_as_their_data_in_the_order_of_the_markers() -> None:
    first, second, gone = AbortedTxn(4, 10, 20, 9), AbortedTxn(5, 9, 21, 9), AbortedTxn(6, 8, 22, 8)
    walk = Walk(first, second, gone)
    walk.data(10, 4)
    walk.data(11, 5)
    assert [walk.marker(20, 4), walk.marker(21, 5), walk.marker(22, 6)] == [False, False, True]
    assert walk.transactions.take_retained() == [first, second]
    assert walk.transactions.take_retained() == []


def test_a_row_may_come_with_every_segment_that_its_transaction_touches() -> None:
    walk = Walk(TXN)
    assert walk.data(10)
    walk.transactions.add_aborted([TXN])
    assert walk.data(15)
    walk.transactions.add_aborted([TXN, AbortedTxn(4, 30, 40, 30)])
    assert [walk.marker(20), walk.data(21), walk.marker(22, is_commit=True)] == [False, False, False]
    assert walk.data(30)
    walk.transactions.add_aborted([TXN])
    assert [walk.data(31), walk.marker(40)] == [True, False]
    assert walk.transactions.take_retained() == [TXN, AbortedTxn(4, 30, 40, 30)]


def test_a_row_that_comes_too_late_aborts_nothing_that_follows() -> None:
    walk = Walk()
    walk.data(25)
    walk.marker(26, is_commit=True)
    walk.transactions.add_aborted([TXN])
    assert not walk.data(27)
    assert not walk.marker(28, is_commit=True)


def test_a_row_whose_marker_is_missing_ends_with_its_last_offset() -> None:
    """Kafka would take the producer's later transactions for aborted, too."""
    walk = Walk(TXN, AbortedTxn(4, 30, 40, 30))
    assert [walk.data(10), walk.data(21), walk.marker(22, is_commit=True)] == [True, False, False]
    assert [walk.data(30), walk.marker(40)] == [True, False]
    assert walk.transactions.take_retained() == [AbortedTxn(4, 30, 40, 30)]
    alone = Walk(TXN)
    assert [alone.data(10), alone.marker(21)] == [True, True]
    assert alone.transactions.take_retained() == []


def test_an_emptied_marker_is_unneeded() -> None:
    walk = Walk(TXN)
    assert walk.marker(5, is_empty=True)
    assert walk.marker(5, is_commit=True, is_empty=True)


def test_control_records_of_other_types_are_left_alone() -> None:
    """LEADER_CHANGE of a KRaft log, and what is not known yet: ControlRecordType.UNKNOWN."""
    for kind in (2, 99):
        data = build_batch([Record(3, 0, b"\x00\x00\x00" + bytes([kind]), b"")], base_offset=3, is_control=True)
        assert not CleanedTransactions(0).is_marker_unneeded(read_header(data), data)


def test_a_marker_that_cannot_be_read_ends_it() -> None:
    for key in (b"\x00", None):
        data = build_batch([Record(3, 0, key, b"")], base_offset=3, is_control=True)
        with pytest.raises(UncleanableLog, match=r"offset 3 .*marker"):
            CleanedTransactions(0).is_marker_unneeded(read_header(data), data)
    cut = pack_batch(
        b"\x0e", record_count=1, last_offset_delta=0, base_timestamp=0, max_timestamp=0, base_offset=3, is_control=True
    )
    with pytest.raises(UncleanableLog, match="offset 3 "):
        CleanedTransactions(0).is_marker_unneeded(read_header(cut), cut)


def test_an_abort_without_a_row_is_refused_if_it_has_data_that_can_be_read() -> None:
    walk = Walk()
    assert walk.marker(9)
    assert not walk.data(10)
    with pytest.raises(UncleanableLog, match="producer 4 of which the transaction index knows nothing"):
        walk.marker(20)
    before_start = Walk(log_start_offset=11)
    assert [before_start.data(10), before_start.marker(20)] == [False, True]
    at_start = Walk(log_start_offset=10)
    at_start.data(10)
    with pytest.raises(UncleanableLog):
        at_start.marker(20)
    other_producer = Walk()
    assert [other_producer.data(10, 5), other_producer.marker(20)] == [False, True]
