"""Power fails: what was flushed is there byte for byte, and the rest is a log, too, whatever became of it.

Long histories by Hypothesis on a disk that loses what was not synced (losing_disk.py), with rolls, both kinds of flush,
also while appends go on, truncations and deletions, kills and stops. The recovery point with which a log opens is that
of the last checkpoint, which is written after each truncation, as `Log.truncate_to` asks for.
"""

import random
from typing import Any

from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from odradek.broker.log.config import LogConfig
from odradek.broker.log.flush import Flush
from odradek.broker.log.log import Log
from odradek.protocol.batches.batch import crc_matches, iterate_batches
from odradek.testing.sim.world.losing_disk import Fate, LosingDisk
from tests.broker.log.logs import (
    T0,
    Known,
    Model,
    append,
    batch,
    known_producers,
    open_log,
    with_forgotten,
)

configs = st.builds(
    LogConfig,
    segment_bytes=st.integers(220, 900),
    index_interval_bytes=st.sampled_from([0, 90, 300]),
    preallocate=st.booleans(),
)


class PowerFailures(RuleBasedStateMachine):
    """`everything` are all batches ever appended, at their offsets: nothing else may ever be read."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = LosingDisk()
        self.disk.make_dir("data")
        self.disk.sync_dir("")
        self.config = LogConfig()
        self.model = Model()
        self.everything: set[bytes] = set()
        self.log: Log = open_log(self.disk)
        self.checkpoint = 0
        self.epoch = 0
        self.flush: Flush | None = None
        self.has_run = False
        self.has_lost_power = self.has_gaps = False
        """What was lost was not at the end: there are offsets without a batch."""
        self.hidden_gap = -1
        """Before the log start a segment is gone that begins here, and older ones are there: a deletion undone in part.
        With what such a log knows of producers, and where a cut to before its start ends, it need not be exact."""

    @initialize(config=configs)
    def configure(self, config: LogConfig) -> None:
        self.config = self.log.config = config

    # -- what happens to the log ----------------------------------------------------------------------------------

    @rule(count=st.integers(1, 3), value=st.binary(max_size=40))
    def append_plain(self, count: int, value: bytes) -> None:
        self._append(batch(*[T0] * count, value=value))

    @rule(count=st.integers(1, 2), producer_id=st.integers(0, 2))
    @precondition(lambda self: not self.has_hidden_gap)
    def append_idempotent(self, count: int, producer_id: int) -> None:
        epoch, known = self.model.producers().get(producer_id, (0, []))
        self._append(batch(*[T0] * count, producer=(producer_id, epoch, known[-1][1] + 1 if known else 0)))

    def _append(self, data: bytes) -> None:
        append(self.log, data, self.epoch)
        self.model.append(data, self.epoch)
        self.everything.add(self.model.batches[-1][2])

    @rule()
    def roll(self) -> None:
        self.log.roll(0)

    @rule()
    def new_leader_epoch(self) -> None:
        self.epoch += 1

    @rule(settle=st.booleans(), with_active=st.booleans())
    def flush_now(self, settle: bool, with_active: bool) -> None:
        if (flush := self.log.begin_flush(settle=settle, with_active=with_active or not settle)) is not None:
            flush.run()
            self.log.end_flush(flush)
        if with_active or not settle:
            assert self.log.durable_offset == self.model.log_end_offset

    @rule(settle=st.booleans())
    @precondition(lambda self: self.flush is None)
    def begin_flush(self, settle: bool) -> None:
        self.flush, self.has_run = self.log.begin_flush(settle=settle), False

    @rule()
    @precondition(lambda self: self.flush is not None and not self.has_run)
    def run_flush(self) -> None:
        assert self.flush is not None
        self.flush.run()
        self.has_run = True

    @rule()
    @precondition(lambda self: self.has_run)
    def end_flush(self) -> None:
        assert self.flush is not None
        self.log.end_flush(self.flush)
        self.flush, self.has_run = None, False

    @rule()
    def write_checkpoint(self) -> None:
        self.checkpoint = self.log.recovery_point

    @rule(data=st.data())
    @precondition(lambda self: not self.has_gaps and not self.has_hidden_gap)
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log.base_offsets[0], self.model.log_end_offset), "offset")
        self.log.truncate_to(offset)
        self.model.truncate_to(offset)
        self.checkpoint = min(self.checkpoint, self.log.recovery_point)
        self.epoch += 1

    @rule(data=st.data())
    def advance_log_start(self, data: st.DataObject) -> None:
        """Over what is durable: of the rest nobody can say, after a loss of power, what stands before the log start."""
        start = self.model.log_start_offset
        offset = data.draw(st.integers(start, max(start, self.log.durable_offset)), "offset")
        self.log.advance_log_start(offset)
        self.model.advance_log_start(offset)

    @property
    def has_hidden_gap(self) -> bool:
        return self.hidden_gap > self.log.base_offsets[0]

    # -- ends -----------------------------------------------------------------------------------------------------

    @rule()
    def kill_and_start(self) -> None:
        self.log.close_without_flush()
        self._open(self.disk)
        self._check_all()

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self.checkpoint = self.log.recovery_point
        self._open(self.disk, is_clean=True)
        self._check_all()

    @rule(seed=st.integers(0, 1 << 32), share=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    def lose_power(self, seed: int, share: float) -> None:
        self.has_lost_power = True
        durable_offset, base_offsets = self.log.durable_offset, self.log.base_offsets
        note(f"power fails; {durable_offset} of {self.model.log_end_offset} offsets are durable")
        self.log.close_without_flush()
        self._open(self.disk.after_power_failure(Fate(random.Random(seed), share)))
        self._check_what_was_durable(durable_offset)
        gone = set(base_offsets).difference(self.log.base_offsets)
        self.hidden_gap = max([self.hidden_gap, *(offset for offset in gone if offset < self.log.log_start_offset)])
        self._take_over_what_is_there()

    def _open(self, disk: LosingDisk, *, is_clean: bool = False) -> None:
        self.disk, self.flush, self.has_run = disk, None, False
        self.log = open_log(
            disk,
            self.config,
            log_start_offset=self.model.log_start_offset,
            recovery_point=self.checkpoint,
            is_clean=is_clean,
        )

    def _check_what_was_durable(self, durable_offset: int) -> None:
        log, model = self.log, self.model
        if durable_offset > model.log_start_offset:
            assert log.log_start_offset == model.log_start_offset
        assert log.log_end_offset >= durable_offset
        expected = b"".join(data for _, last, data in model.readable() if last < durable_offset)
        assert all_of(log)[: len(expected)] == expected

    def _take_over_what_is_there(self) -> None:
        """The model becomes what the log holds, which is made of whole batches that were appended there once."""
        found = all_of(self.log)
        view = memoryview(found)
        before = [entry for entry in self.model.batches if entry[1] < self.log.log_start_offset]
        model = Model(before, self.log.log_start_offset, self.log.log_end_offset)
        for position, header in iterate_batches(found):
            data = view[position : position + header.size_bytes]
            assert crc_matches(data)
            assert bytes(data) in self.everything
            model.batches.append((header.base_offset, header.last_offset, bytes(data)))
        reached = model.log_start_offset
        self.has_gaps = False
        for first, last, _ in model.readable():
            self.has_gaps |= first > reached
            reached = last + 1
        self.has_gaps |= reached != model.log_end_offset
        for first, _, stored_batch in model.batches:
            epoch = int.from_bytes(stored_batch[12:16], "big")
            if not model.epochs or epoch > model.epochs[-1][0]:
                model.epochs.append((epoch, first))
        model.epochs = model.epochs_from_start()
        self.model = model
        self._check_all()

    def _check_all(self) -> None:
        """As `assert_same`; but where content was lost before the last segment there are offsets without any, which
        readers step over."""
        log, model = self.log, self.model
        assert (log.log_start_offset, log.log_end_offset) == (model.log_start_offset, model.log_end_offset)
        for offset in range(log.log_start_offset, log.log_end_offset):
            assert bytes(log.fetch(offset, 0, log.log_end_offset, True).records) == model.read(
                offset, 0, log.log_end_offset, True
            )
        known, expected = known_producers(log), model.producers()
        if self.has_lost_power:
            # Where deletions were undone in part and a snapshot is lost, batches before the log start may be forgotten.
            known = with_what_is_hidden(known, expected, log.log_start_offset)
        assert with_forgotten(known, expected, log.base_offsets[0]) == expected
        entries = [tuple(entry) for entry in log.epochs.entries if entry.start_offset < log.log_end_offset]
        if not self.has_gaps:  # of a batch that is lost the checkpoint may know the epoch
            assert entries == [entry for entry in model.epochs_from_start() if entry[1] < model.log_end_offset]

    def teardown(self) -> None:
        self.log.close()


def with_what_is_hidden(known: Known, expected: Known, log_start_offset: int) -> Known:
    """Adds the batches before the log start that are not known."""
    filled: Known = {}
    for producer_id, (epoch, batches) in expected.items():
        known_epoch, found = known.pop(producer_id, (epoch, []))
        hidden = [batch for batch in batches if batch[2] < log_start_offset and batch not in found]
        filled[producer_id] = (known_epoch, sorted(hidden + found, key=lambda batch: batch[2]))
    return filled | known


def all_of(log: Log) -> bytes:
    """Everything in the log, batch after batch."""
    pieces: list[bytes] = []
    offset = log.log_start_offset
    while data := bytes(log.fetch(offset, 1 << 20, log.log_end_offset, True).records):
        pieces.append(data)
        *_, (_, last) = iterate_batches(data)
        assert last.last_offset >= offset
        offset = last.last_offset + 1
    return b"".join(pieces)


PowerFailures.TestCase.settings = settings(max_examples=100, stateful_step_count=30)
TestPowerFailures: Any = PowerFailures.TestCase
