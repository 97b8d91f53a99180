"""Transactions in a log: what was aborted, what is open and what is stable, over segments, starts and truncations.

The logs are made by hand (transactions.py), and compared with a model that replays all batches for each question.
"""

import errno
import os
import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.log.producers import Producers
from odradek.broker.log.recovery import replay
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer
from odradek.testing.sim.world.losing_disk import ALL_IS_LOST, Fate, LosingDisk
from tests.broker.log.logs import DIRECTORY, Crash, FaultyDisk, append, assert_same, batch, error_of, open_log
from tests.broker.log.transactions import EPOCH, TxnModel, assert_transactions, data_of, marker_of

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100)
ONE_SEGMENT = LogConfig(index_interval_bytes=100)
WHOLE = 1 << 20
"""An answer holds all that there is."""
OTHERS = (b"a", b"bb")


def written(disk: MemoryDisk, config: LogConfig = CONFIG) -> tuple[Log, TxnModel]:
    """Three producers: one aborts over several segments, one commits, the third is still at it. Plain records too."""
    log, model = open_log(disk, config), TxnModel()
    model.write(log, 1, b"aborted", b"aborted")
    model.write(log, 2, b"committed")
    model.write(log, 9, b"plain", is_transactional=False)
    for number in range(6):
        model.write(log, 1, b"aborted %d" % number)
        model.write(log, 2, b"committed %d" % number)
    model.end(log, 2, is_abort=False)
    model.end(log, 1, is_abort=True)
    model.write(log, 2, b"aborted at once")
    model.end(log, 2, is_abort=True)
    model.write(log, 3, b"open")
    model.write(log, 1, b"the next one")
    model.write(log, 9, *OTHERS, is_transactional=False)
    return log, model


def txn_indexes(disk: MemoryDisk) -> list[str]:
    return [f"{DIRECTORY}/{name}" for name in disk.list_dir(DIRECTORY) if name.endswith(".txnindex")]


def killed(log: Log, disk: MemoryDisk, config: LogConfig = CONFIG, *, recovery_point: int = 0) -> Log:
    log.close_without_flush()
    return open_log(disk, config, recovery_point=recovery_point)


def stopped(log: Log, disk: MemoryDisk, config: LogConfig = CONFIG) -> Log:
    log.close()
    return open_log(disk, config, recovery_point=log.recovery_point, is_clean=True)


# -- in one process ---------------------------------------------------------------------------------------------------


def test_a_reader_of_any_range_is_told_what_was_aborted_in_it() -> None:
    disk = MemoryDisk()
    log, model = written(disk)
    assert len(log.base_offsets) > 4
    assert [tuple(txn) for txn in model.ended()][1] == (1, 0, 17, True)
    assert_transactions(log, model)


def test_the_row_is_in_the_segment_of_the_marker_alone() -> None:
    disk = MemoryDisk()
    log, model = written(disk)
    rows = {segment.base_offset: list(segment.txn_index.rows()) for segment in log.segments}
    markers = [last for _, _, last, is_aborted in model.ended() if is_aborted]
    for segment in log.segments:
        assert [row.last_offset for row in rows[segment.base_offset]] == [
            last for last in markers if segment.base_offset <= last < segment.next_offset
        ]
    assert len(txn_indexes(disk)) == sum(bool(found) for found in rows.values())


def test_a_marker_without_a_transaction_ends_none() -> None:
    log, model = open_log(MemoryDisk()), TxnModel()
    model.end(log, 1, is_abort=True)
    model.write(log, 1, b"x")
    model.end(log, 1, is_abort=True)
    model.end(log, 1, is_abort=True)
    assert [tuple(txn) for txn in model.ended()] == [(1, 1, 2, True)]
    assert_transactions(log, model)


def test_clients_transactional_batches_are_refused_and_markers_are_the_coordinator_s() -> None:
    log = open_log(MemoryDisk())
    assert error_of(lambda: append(log, data_of(1, 0, b"x"))) is ErrorCode.INVALID_TXN_STATE
    assert log.log_end_offset == 0
    assert append(log, marker_of(1, is_abort=True)).base_offset == 0


def test_a_replay_tells_of_the_batches_between_two_offsets_and_of_no_others() -> None:
    log, model = written(MemoryDisk())
    for start in range(log.log_end_offset + 1):
        for end in (start, start + 1, start + 4, log.log_end_offset):
            producers = Producers()
            completed = [txn.last_offset for txn in replay(producers, log.segments.all, start, end)]
            between = TxnModel([entry for entry in model.batches if entry[1] >= start and entry[0] < end])
            told = {
                producer_id: [tuple(batch[:4]) for batch in state.batches]
                for producer_id, state in producers.states()
                if state.batches
            }
            assert told == {producer_id: known for producer_id, (_, known) in between.producers().items()}, (start, end)
            assert completed == [last for _, _, last, _ in between.ended()]


# -- over a start -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [stopped, killed])
@pytest.mark.parametrize("config", [CONFIG, ONE_SEGMENT], ids=["segments", "one segment"])
def test_after_a_start_all_is_known_again(how: Any, config: LogConfig) -> None:
    disk = MemoryDisk()
    log, model = written(disk, config)
    log = how(log, disk, config)
    assert_same(log, model)
    assert_transactions(log, model)
    model.end(log, 3, is_abort=True)
    model.end(log, 1, is_abort=False)
    assert_transactions(how(log, disk, config), model)


@pytest.mark.parametrize("config", [CONFIG, ONE_SEGMENT], ids=["segments", "one segment"])
def test_wherever_the_recovery_point_is(config: LogConfig) -> None:
    disk = MemoryDisk()
    log, model = written(disk, config)
    for recovery_point in range(model.log_end_offset + 2):
        log = killed(log, disk, config, recovery_point=recovery_point)
        assert_transactions(log, model)


@pytest.mark.parametrize("content", [None, b"", bytes(17), bytes(34), b"\xa5" * 68])
@pytest.mark.parametrize("config", [CONFIG, ONE_SEGMENT], ids=["segments", "one segment"])
def test_behind_the_recovery_point_a_lost_or_damaged_index_is_built_anew(
    config: LogConfig, content: bytes | None
) -> None:
    disk = MemoryDisk()
    log, model = written(disk, config)
    log.close_without_flush()
    before = {path: disk.read_whole(path) for path in txn_indexes(disk)}
    for path in before:
        disk.remove(path)
        if content is not None:
            disk.write_whole(path, content)
    log = open_log(disk, config)
    assert_transactions(log, model)
    assert {path: disk.read_whole(path) for path in txn_indexes(disk)} == before


@pytest.mark.parametrize("content", [bytes(17), bytes(34), b"\xa5" * 68])
@pytest.mark.parametrize("is_clean", [True, False])
def test_an_old_one_that_is_damaged_is_built_anew_by_the_first_reader(
    is_clean: bool, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a segment that no start looks at. One that is missing or empty cannot be told from one without rows."""
    disk = MemoryDisk()
    log, model = written(disk)
    log.close()
    before = {path: disk.read_whole(path) for path in txn_indexes(disk)}
    for path in before:
        disk.write_whole(path, content)
    log = open_log(disk, CONFIG, recovery_point=log.recovery_point, is_clean=is_clean)
    assert_transactions(log, model)
    assert {path: disk.read_whole(path) for path in txn_indexes(disk)} == before
    assert "built anew" in caplog.text


def test_after_older_segments_went_the_snapshot_knows_what_began_in_them() -> None:
    disk = MemoryDisk()
    log, model = written(disk)
    log.close()
    log = open_log(disk, CONFIG, recovery_point=log.recovery_point, is_clean=True)
    marker = next(last for _, _, last, is_aborted in model.ended() if is_aborted)
    holder = max(base for base in log.base_offsets if base <= marker)
    assert holder > 0
    log.advance_log_start(holder)
    model.advance_log_start(holder)
    path = f"{DIRECTORY}/{holder:020d}.txnindex"
    log.close()
    disk.write_whole(path, b"\xa5" * 34)
    log = open_log(disk, CONFIG, log_start_offset=holder, recovery_point=log.recovery_point, is_clean=True)
    assert_transactions(log, model)


# -- damage to the index while it is mended ---------------------------------------------------------------------------


def damaged_indexes(*, is_old: bool) -> tuple[FaultyDisk, TxnModel, int]:
    """With the recovery point of the next start."""
    disk = FaultyDisk()
    log, model = written(disk)
    log.close()
    for path in txn_indexes(disk):
        disk.write_whole(path, b"\xa5" * 34)
    disk.count_anew()
    return disk, model, log.recovery_point if is_old else 0


@pytest.mark.parametrize("is_old", [True, False])
def test_a_process_that_dies_while_it_builds_an_index_anew_loses_no_row(is_old: bool) -> None:
    """Wherever it does: what the next start finds is noticed to be damaged, too, or it is whole."""
    disk, model, recovery_point = damaged_indexes(is_old=is_old)
    assert_transactions(open_log(disk, CONFIG, recovery_point=recovery_point), model)
    for step in disk.telling_steps():
        disk, model, recovery_point = damaged_indexes(is_old=is_old)
        disk.fail_at(step, Crash, for_good=True)
        with pytest.raises(Crash):
            assert_transactions(open_log(disk, CONFIG, recovery_point=recovery_point), model, [WHOLE])
        disk.heal()
        assert_transactions(open_log(disk, CONFIG, recovery_point=recovery_point), model, [WHOLE])


def losing_disk() -> LosingDisk:
    disk = LosingDisk()
    disk.make_dir(DIRECTORY)
    disk.sync_dir("")
    disk.sync_dir("data")
    return disk


@pytest.mark.parametrize("seed", range(12))
def test_what_was_settled_outlives_a_loss_of_power(seed: int) -> None:
    """The index comes into being with its first row, some time after its segment. What follows is long enough that the
    start does not come back to the marker."""
    disk = losing_disk()
    log, model = open_log(disk, ONE_SEGMENT), TxnModel()
    model.write(log, 1, b"x")
    log.flush()
    model.end(log, 1, is_abort=True)
    for _ in range(5):
        model.write(log, 9, *OTHERS, is_transactional=False)
    log.flush()
    fate = ALL_IS_LOST if seed == 0 else Fate(random.Random(seed))
    after = disk.after_power_failure(fate)
    assert_transactions(open_log(after, ONE_SEGMENT, recovery_point=log.recovery_point), model)


@pytest.mark.parametrize("seed", range(12))
def test_an_index_that_was_built_anew_outlives_a_loss_of_power(seed: int) -> None:
    disk = losing_disk()
    log, model = written(disk)
    log.close()
    for path in txn_indexes(disk):
        disk.write_whole(path, b"\xa5" * 34)
    log = open_log(disk, CONFIG, recovery_point=log.recovery_point, is_clean=True)
    assert_transactions(log, model)
    fate = ALL_IS_LOST if seed == 0 else Fate(random.Random(seed))
    after = disk.after_power_failure(fate)
    assert_transactions(open_log(after, CONFIG, recovery_point=log.recovery_point), model)


def test_rows_without_room_are_there_after_a_stop_or_the_stop_was_not_clean() -> None:
    class Full(MemoryDisk):
        is_full = False

        def write(self, content: Content, data: Buffer) -> None:
            if self.is_full and any(self._find(path) is content for path in txn_indexes(self)):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().write(content, data)

    disk = Full()
    log, model = open_log(disk, CONFIG), TxnModel()
    model.write(log, 1, b"x")
    disk.is_full = True
    model.end(log, 1, is_abort=True)
    assert_transactions(log, model)
    is_clean = True
    try:
        log.close()
    except KafkaError:
        is_clean = False
    disk.is_full = False
    log = open_log(disk, CONFIG, recovery_point=log.recovery_point, is_clean=is_clean)
    assert_transactions(log, model)


# -- truncation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [CONFIG, ONE_SEGMENT], ids=["segments", "one segment"])
def test_truncation_at_every_offset_opens_what_its_marker_had_ended(config: LogConfig) -> None:
    end = written(MemoryDisk(), config)[1].log_end_offset
    for offset in range(end + 1):
        disk = MemoryDisk()
        log, model = written(disk, config)
        log.truncate_to(offset)
        model.truncate_to(offset)
        assert_transactions(log, model)
        assert_transactions(killed(log, disk, config), model)


@pytest.mark.parametrize("offset", [3, 14, 18])
def test_truncation_where_an_index_is_damaged(offset: int) -> None:
    disk = MemoryDisk()
    log, model = written(disk, ONE_SEGMENT)
    log.close()
    (path,) = txn_indexes(disk)
    disk.write_whole(path, b"\xa5" * 34)
    log = open_log(disk, ONE_SEGMENT, recovery_point=log.recovery_point, is_clean=True)
    log.truncate_to(offset)
    model.truncate_to(offset)
    assert_transactions(log, model)
    append(log, batch())


# -- long histories ---------------------------------------------------------------------------------------------------


class Transactions(RuleBasedStateMachine):
    """Producers 0 to 2 write, commit and abort as they like; the log rolls, starts again, and loses its ends."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk()
        self.log, self.model = open_log(self.disk, CONFIG), TxnModel()
        self.checkpoint = 0

    @rule(producer_id=st.integers(0, 2), count=st.integers(1, 2), is_transactional=st.booleans())
    def write(self, producer_id: int, count: int, is_transactional: bool) -> None:
        """Outside of a transaction only where none is open: the log refuses the other."""
        is_transactional |= self.log.producers.has_open_transaction(producer_id, EPOCH)
        values = [b"v%d" % self.model.log_end_offset] * count
        self.model.write(self.log, producer_id, *values, is_transactional=is_transactional)

    @rule(producer_id=st.integers(0, 2), is_abort=st.booleans())
    def end(self, producer_id: int, is_abort: bool) -> None:
        self.model.end(self.log, producer_id, is_abort=is_abort)

    @rule()
    def roll(self) -> None:
        self.log.roll(0)

    @rule(with_active=st.booleans())
    def flush(self, with_active: bool) -> None:
        if (flush := self.log.begin_flush(settle=True, with_active=with_active)) is not None:
            flush.run()
            self.log.end_flush(flush)
        self.checkpoint = self.log.recovery_point

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log.base_offsets[0], self.model.log_end_offset), "offset")
        self.log.truncate_to(offset)
        self.model.truncate_to(offset)
        self.checkpoint = min(self.checkpoint, self.log.recovery_point)

    @rule(data=st.data())
    @precondition(lambda self: len(self.log.base_offsets) > 2)
    def advance_log_start(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.model.log_start_offset, self.model.log_end_offset), "offset")
        self.log.advance_log_start(offset)
        self.model.advance_log_start(offset)

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.checkpoint = self.log.recovery_point
        self._start(is_clean=True)

    @rule(spoilt=st.none() | st.tuples(st.integers(0, 9), st.sampled_from([bytes(17), bytes(34), b"\xff" * 102])))
    def kill_and_start(self, spoilt: tuple[int, bytes] | None) -> None:
        self.log.close_without_flush()
        paths = txn_indexes(self.disk)
        if spoilt is not None and paths:
            self.disk.write_whole(paths[spoilt[0] % len(paths)], spoilt[1])
        self._start()

    def _start(self, *, is_clean: bool = False) -> None:
        self.log = open_log(
            self.disk,
            CONFIG,
            log_start_offset=self.model.log_start_offset,
            recovery_point=self.checkpoint,
            is_clean=is_clean,
        )

    @invariant()
    def they_agree(self) -> None:
        assert_transactions(self.log, self.model)

    def teardown(self) -> None:
        self.log.close()


Transactions.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestTransactions: Any = Transactions.TestCase
