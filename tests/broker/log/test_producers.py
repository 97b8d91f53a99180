"""The idempotence rules at their edges: the window of five, epochs, the wrap of sequences (protocol.md of KIP-98)."""

import pytest

from odradek.broker.log.markers import Marker
from odradek.broker.log.producers import SEQUENCE_MAX, CompletedTxn, OpenTxn, ProducedBatch, Producers
from odradek.broker.log.verifications import Verification
from odradek.protocol.batches.batch import BatchHeader, read_header
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.log.logs import T0, batch

ABORT, COMMIT = Marker(True, 5), Marker(False, 5)
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def header(sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7, timestamp: int = T0) -> BatchHeader:
    return read_header(batch(*[timestamp] * count, producer=(producer_id, epoch, sequence)))


class Partition:
    """Producers, and the offsets that a log would give."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.end = 100

    def send(self, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7) -> int | ErrorCode:
        """The base offset of the batch, or why it was refused."""
        sent = header(sequence, count, epoch=epoch, producer_id=producer_id)
        try:
            first = self.producers.check(sent)
        except KafkaError as error:
            return error.code
        if first is not None:
            return first.base_offset
        base_offset = self.end
        self.producers.update(sent, base_offset)
        self.end += count
        return base_offset


def test_sequences_go_on_and_gaps_are_refused() -> None:
    partition = Partition()
    assert partition.send(0, 3) == 100
    assert partition.send(3, 2) == 103
    assert partition.send(6) is OUT_OF_ORDER
    assert partition.send(4) is OUT_OF_ORDER
    assert partition.send(5) == 105


def test_the_last_five_batches_are_duplicates_and_the_sixth_last_is_not() -> None:
    partition = Partition()
    for sequence in range(0, 12, 2):
        assert partition.send(sequence, 2) == 100 + sequence
    for sequence in range(2, 12, 2):
        assert partition.send(sequence, 2) == 100 + sequence, "answered as the first time"
    assert partition.send(0, 2) is OUT_OF_ORDER
    assert partition.end == 112
    assert partition.send(12) == 112


def test_a_duplicate_answers_with_offsets_and_timestamp_of_the_first_append() -> None:
    producers = Producers()
    producers.update(header(0, 3, timestamp=T0 + 5), 40)
    assert producers.check(header(0, 3, timestamp=T0 + 99)) == ProducedBatch(0, 2, 40, 42, T0 + 5)


def test_a_duplicate_has_the_same_first_and_last_sequence() -> None:
    partition = Partition()
    partition.send(0, 3)
    assert partition.send(0, 2) is OUT_OF_ORDER
    assert partition.send(1, 2) is OUT_OF_ORDER
    assert partition.send(0, 4) is OUT_OF_ORDER


def test_a_new_epoch_starts_at_zero_and_forgets_the_old_window() -> None:
    partition = Partition()
    partition.send(0, 3, epoch=4)
    assert partition.send(3, 1, epoch=5) is OUT_OF_ORDER
    assert partition.send(0, 3, epoch=5) == 103, "no duplicate of the same sequences under epoch 4"
    assert partition.send(3, 1, epoch=4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.send(0, 3, epoch=4) is ErrorCode.INVALID_PRODUCER_EPOCH, "not even as a duplicate"
    assert partition.send(3, 1, epoch=5) == 106


@pytest.mark.parametrize("sequence", [0, 1, 4711, SEQUENCE_MAX])
def test_where_nothing_is_known_any_sequence_is_accepted(sequence: int) -> None:
    partition = Partition()
    assert partition.send(sequence, epoch=3) == 100
    assert partition.send((sequence + 1) % 2**31, epoch=3) == 101


def test_sequences_wrap_after_the_largest_int32() -> None:
    partition = Partition()
    assert partition.send(SEQUENCE_MAX - 1, 2) == 100
    assert partition.send(SEQUENCE_MAX, 1) is OUT_OF_ORDER
    assert partition.send(1) is OUT_OF_ORDER
    assert partition.send(0) == 102
    assert partition.send(1) == 103


def test_a_batch_may_cross_the_wrap_and_is_known_again() -> None:
    partition = Partition()
    assert partition.send(SEQUENCE_MAX - 1, 4) == 100  # SEQUENCE_MAX - 1, SEQUENCE_MAX, 0, 1
    assert partition.send(SEQUENCE_MAX - 1, 4) == 100
    state = partition.producers.get(7)
    assert state is not None
    assert state.last_sequence == 1
    assert partition.send(0) is OUT_OF_ORDER
    assert partition.send(2) == 104


def test_producers_do_not_know_of_one_another() -> None:
    partition = Partition()
    assert partition.send(0, producer_id=1) == 100
    assert partition.send(0, producer_id=2, epoch=9) == 101
    assert partition.send(1, producer_id=1) == 102
    assert partition.send(0, producer_id=2, epoch=9) == 101
    assert len(partition.producers) == 2


def test_a_batch_that_was_refused_leaves_no_trace() -> None:
    partition = Partition()
    partition.send(0)
    for _ in range(3):
        assert partition.send(5) is OUT_OF_ORDER
        assert partition.send(5, epoch=1) is OUT_OF_ORDER
    assert partition.send(1) == 101


# -- transactions --------------------------------------------------------------------------------------------------


def decided(producers: Producers, sent: BatchHeader, verification: Verification | None = None) -> ErrorCode:
    """NONE: it may be appended."""
    try:
        assert producers.check(sent, verification) is None
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def ended(producers: Producers, marker: BatchHeader, coordinator_epoch: int = 5, version: int = 0) -> ErrorCode:
    """NONE: the marker may be appended."""
    try:
        producers.check_marker(marker, Marker(False, coordinator_epoch), version)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_the_first_batch_of_a_transaction_needs_a_question_that_still_stands() -> None:
    producers = Producers()
    for producer_id in (7, -1):
        assert decided(producers, transactional(0, producer_id=producer_id)) is ErrorCode.INVALID_TXN_STATE
    asked = producers.verifications.begin(7, 0, 0, T0)
    assert decided(producers, transactional(0), asked) is ErrorCode.NONE
    assert decided(producers, transactional(0, producer_id=8), asked) is ErrorCode.INVALID_TXN_STATE
    producers.update(ending(), 10, COMMIT)
    assert decided(producers, transactional(0), asked) is ErrorCode.INVALID_TXN_STATE, "it has ended meanwhile"


def test_a_marker_of_version_2_leaves_the_question_about_the_next_transaction() -> None:
    """It has the epoch with which the producer goes on, and may come after the producer's next batch has."""
    producers = Producers()
    producers.update(transactional(0, epoch=3), 10)
    asked = producers.verifications.begin(7, 4, 0, T0)
    producers.update(ending(epoch=4), 11, COMMIT, 2)
    assert decided(producers, transactional(0, epoch=4), asked) is ErrorCode.NONE
    producers.update(ending(epoch=5), 12, ABORT, 2)
    assert decided(producers, transactional(0, epoch=4), asked) is ErrorCode.INVALID_TXN_STATE, "it is over"


def test_the_batches_behind_the_first_need_no_question() -> None:
    producers = Producers()
    asked = producers.verifications.begin(7, 0, 0, T0)
    producers.update(transactional(0), 10)
    assert decided(producers, transactional(1)) is ErrorCode.NONE
    assert decided(producers, transactional(1), asked) is ErrorCode.NONE
    assert decided(producers, transactional(3)) is OUT_OF_ORDER
    assert decided(producers, transactional(0, epoch=1)) is ErrorCode.INVALID_TXN_STATE, "that is another transaction"
    producers.update(ending(), 11, COMMIT)
    assert decided(producers, transactional(1), asked) is ErrorCode.INVALID_TXN_STATE


def test_a_batch_is_not_appended_before_an_earlier_one_that_waits_too() -> None:
    producers = Producers()
    asked = producers.verifications.begin(7, 0, 3, T0)
    assert producers.verifications.begin(7, 0, 0, T0) is asked
    assert decided(producers, transactional(3), asked) is OUT_OF_ORDER
    assert decided(producers, transactional(0), asked) is ErrorCode.NONE


def test_a_stale_epoch_is_refused_with_a_question_too() -> None:
    producers = Producers()
    producers.update(ending(epoch=4), 10, ABORT)
    asked = producers.verifications.begin(7, 3, 0, T0)
    assert decided(producers, transactional(0, epoch=3), asked) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_coordinators_batches_have_no_sequence_and_are_no_duplicates() -> None:
    producers = Producers()
    asked = producers.verifications.begin(7, 0, -1, T0)
    assert producers.check(transactional(-1), asked, is_coordinators=True) is None
    producers.update(transactional(-1), 10)
    assert producers.check(transactional(-1), None, is_coordinators=True) is None
    producers.update(transactional(-1), 11)
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        producers.update(ending(epoch=1), 12, ABORT)
        stale = producers.verifications.begin(7, 0, -1, T0)
        producers.check(transactional(-1), stale, is_coordinators=True)


def test_a_marker_of_an_older_epoch_or_coordinator_is_refused() -> None:
    producers = Producers()
    assert ended(producers, ending(epoch=3)) is ErrorCode.NONE, "nothing is known"
    producers.update(transactional(0, epoch=3), 10)
    assert ended(producers, ending(epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert ended(producers, ending(epoch=3)) is ErrorCode.NONE
    producers.update(ending(epoch=3), 11, COMMIT)
    assert ended(producers, ending(epoch=3), coordinator_epoch=4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert ended(producers, ending(epoch=3), coordinator_epoch=5) is ErrorCode.NONE
    assert ended(producers, ending(epoch=3), coordinator_epoch=6) is ErrorCode.NONE


def test_a_repeated_marker_of_version_2_never_ends_the_next_transaction() -> None:
    """Its epoch is the one with which the producer goes on."""
    producers = Producers()
    producers.update(transactional(0, epoch=3), 10)
    assert ended(producers, ending(epoch=3), version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert ended(producers, ending(epoch=4), version=2) is ErrorCode.NONE
    producers.update(ending(epoch=4), 11, COMMIT)
    assert ended(producers, ending(epoch=4), version=2) is ErrorCode.NONE, "the answer was lost"
    producers.update(transactional(0, epoch=4), 12)
    assert ended(producers, ending(epoch=4), version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert ended(producers, ending(epoch=5), version=2) is ErrorCode.NONE


def test_batches_without_producer_are_not_remembered() -> None:
    producers = Producers()
    producers.update(read_header(batch()), 0)
    assert len(producers) == 0


def test_a_marker_brings_its_epoch_and_no_sequence() -> None:
    """Under the same epoch sequences go on, a new epoch begins at 0."""
    partition = Partition()
    partition.send(0, 3)
    marker = header(-1)._replace(attributes=0x30)
    assert partition.producers.update(marker, 103, COMMIT) is None, "no transaction was open"
    assert partition.send(0, 3) == 100
    assert partition.send(3) == 103
    partition.producers.update(marker._replace(producer_epoch=1), 104, COMMIT)
    assert partition.send(4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.send(1, epoch=1) is OUT_OF_ORDER
    assert partition.send(0, epoch=1) == 104


def test_what_compaction_left_of_a_marker_says_nothing() -> None:
    partition = Partition()
    partition.send(0, 3)
    partition.producers.update(header(-1, epoch=1)._replace(attributes=0x30, record_count=0), 103)
    assert partition.send(3) == 103


def transactional(sequence: int, *, producer_id: int = 7, epoch: int = 0) -> BatchHeader:
    return read_header(batch(T0, producer=(producer_id, epoch, sequence), is_transactional=True))


def ending(producer_id: int = 7, epoch: int = 0) -> BatchHeader:
    return header(-1, producer_id=producer_id, epoch=epoch)._replace(attributes=0x30)


def stability(producers: Producers) -> tuple[int | None, int | None]:
    """The first unstable and the first undecided offset."""
    return producers.first_unstable_offset, producers.first_undecided_offset


def test_nothing_is_stable_from_the_first_offset_of_the_oldest_open_transaction_on() -> None:
    producers = Producers()
    assert stability(producers) == (None, None)
    producers.update(transactional(0, producer_id=1), 10)
    producers.update(transactional(0, producer_id=2), 11)
    producers.update(transactional(1, producer_id=1), 12)
    assert stability(producers) == (10, 10)
    assert producers.update(ending(1), 13, ABORT) == CompletedTxn(1, 10, 13, True)
    assert stability(producers) == (10, 11), "the marker may be lost"
    producers.high_watermark_moved(13)
    assert producers.first_unstable_offset == 10, "it is the marker that must be passed"
    producers.high_watermark_moved(14)
    assert producers.first_unstable_offset == 11
    assert producers.update(ending(2), 14, COMMIT) == CompletedTxn(2, 11, 14, False)
    producers.high_watermark_moved(15)
    assert stability(producers) == (None, None)
    assert producers.update(ending(2), 15, COMMIT) is None


def test_a_transaction_outlives_an_epoch_and_ends_with_a_marker_of_the_new_one() -> None:
    """The coordinator fences a producer that is gone with a higher epoch (KIP-98)."""
    producers = Producers()
    producers.update(transactional(0, epoch=3), 10)
    assert producers.update(ending(epoch=4), 11, ABORT) == CompletedTxn(7, 10, 11, True)
    state = producers.get(7)
    assert state is not None
    assert (state.epoch, list(state.batches), state.coordinator_epoch) == (4, [], 5)


def test_a_batch_outside_of_the_open_transaction_is_refused() -> None:
    partition = Partition()
    partition.producers.update(transactional(0), 100)
    assert partition.send(1) is ErrorCode.INVALID_TXN_STATE
    partition.producers.update(ending(), 101, COMMIT)
    assert partition.send(1) == 100


def test_idle_producers_expire_by_record_timestamp_unless_a_transaction_is_open() -> None:
    producers = Producers()
    producers.update(header(0, producer_id=1, timestamp=T0), 0)
    producers.update(header(0, producer_id=2, timestamp=T0 + 1), 1)
    producers.update(transactional(0, producer_id=3), 2)
    assert producers.expire(T0 + 99, 100) == 0
    assert producers.expire(T0 + 100, 100) == 1
    assert sorted(producer_id for producer_id, _ in producers.states()) == [2, 3]
    assert producers.expire(T0 + 10_000, 100) == 1
    assert [producer_id for producer_id, _ in producers.states()] == [3]


# -- the oldest open transaction --------------------------------------------------------------------------------------


def opening(producer_id: int, *, timestamp: int = T0) -> BatchHeader:
    return header(0, producer_id=producer_id, timestamp=timestamp)._replace(attributes=0x10)


def end_of(producer_id: int) -> BatchHeader:
    return opening(producer_id)._replace(attributes=0x30, base_sequence=-1)


def test_the_oldest_open_transaction_is_told_with_the_time_of_its_first_batch() -> None:
    producers = Producers()
    assert producers.oldest_open_txn is None
    producers.update(opening(7), 40, appended_ms=T0 + 10)
    producers.update(opening(8), 41, appended_ms=T0 + 20)
    producers.update(opening(7), 42, appended_ms=T0 + 30)
    assert producers.oldest_open_txn == OpenTxn(7, 0, 40, T0 + 10)
    producers.update(end_of(7), 43, COMMIT)
    assert producers.oldest_open_txn == OpenTxn(8, 0, 41, T0 + 20)
    producers.update(opening(7), 44, appended_ms=T0 + 40)
    producers.update(end_of(8), 45, ABORT)
    assert producers.oldest_open_txn == OpenTxn(7, 0, 44, T0 + 40), "another one, with a time of its own"


@pytest.mark.parametrize(("timestamp", "opened_ms"), [(T0, T0), (-1, 0)])
def test_where_nobody_knows_when_it_was_appended_the_records_say(timestamp: int, opened_ms: int) -> None:
    producers = Producers()
    producers.update(opening(7, timestamp=timestamp), 40)
    producers.update(opening(7, timestamp=T0 + 9), 41)
    assert producers.oldest_open_txn == OpenTxn(7, 0, 40, opened_ms)
