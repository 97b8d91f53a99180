"""What the tests of the log share: batches made by hand, a model of a log in obvious Python, and a disk that fails."""

import errno
import os
import posixpath
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from odradek.broker.disk.disk import Disk, File
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.log.log_end import Appended
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_records
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer
from odradek.testing.sim.world.losing_disk import LosingDisk

DIRECTORY = "data/orders-0"
T0 = 1_700_000_000_000
D = TypeVar("D", bound=MemoryDisk)


def batch(
    *timestamps: int,
    producer: tuple[int, int, int] = (-1, -1, -1),
    value: bytes = b"v",
    codec: Codec = Codec.NONE,
    is_transactional: bool = False,
) -> bytes:
    """A client's batch with a record for each timestamp (one at T0 by default); `producer` is id, epoch, sequence."""
    producer_id, producer_epoch, base_sequence = producer
    return build_batch(
        [Record(delta, timestamp, None, value, ()) for delta, timestamp in enumerate(timestamps or (T0,))],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
    )


def stored(data: bytes, base_offset: int, leader_epoch: int = 0) -> bytes:
    """The same batch as the log has to hold it: base offset and leader epoch by hand, everything else untouched."""
    return base_offset.to_bytes(8, "big") + data[8:12] + leader_epoch.to_bytes(4, "big", signed=True) + data[16:]


def append(log: Log, data: bytes, leader_epoch: int = 0, now_ms: int = 0) -> Appended:
    return log.append(memoryview(data), read_header(data), leader_epoch, now_ms)


def open_log(
    disk: Disk,
    config: LogConfig | None = None,
    *,
    now_ms: int = 0,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    is_clean: bool = False,
) -> Log:
    return Log.open(
        disk,
        DIRECTORY,
        config or LogConfig(),
        now_ms,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
        is_clean=is_clean,
    )


def contents(disk: Disk) -> dict[str, bytes]:
    return {name: disk.read_whole(f"{DIRECTORY}/{name}") for name in disk.list_dir(DIRECTORY)}


def copied(disk: MemoryDisk, copy: D, path: str = "") -> D:
    """What a process that is killed leaves, all that it wrote, on the disk `copy`."""
    for name in disk.list_dir(path):
        below = posixpath.join(path, name)
        if disk.is_dir(below):
            copy.make_dir(below)
            copied(disk, copy, below)
        else:
            copy.write_whole(below, disk.read_whole(below))
    return copy


def read_all(log: Log, size_bytes_max: int = 1 << 20) -> bytes:
    """Everything that is in the log, read as a consumer does: on from the offset after the last batch."""
    pieces: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = bytes(log.fetch(offset, size_bytes_max, log.log_end_offset, True).records)
        assert data, f"nothing at offset {offset} of {log.log_end_offset}"
        pieces.append(data)
        position = 0
        while position < len(data):
            header = read_header(data, position)
            position += header.size_bytes
            offset = header.last_offset + 1
        assert position == len(data), "whole batches only"
    return b"".join(pieces)


Known = dict[int, tuple[int, list[tuple[int, int, int, int]]]]


@dataclass
class Model:
    """What a log is: batches in order, each with its first and its last offset."""

    batches: list[tuple[int, int, bytes]] = field(default_factory=list[tuple[int, int, bytes]])
    log_start_offset: int = 0
    log_end_offset: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def append(self, data: bytes, leader_epoch: int = 0) -> None:
        first = self.log_end_offset
        last = first + read_header(data).last_offset_delta
        self.batches.append((first, last, stored(data, first, leader_epoch)))
        if not self.epochs or leader_epoch > self.epochs[-1][0]:
            self.epochs.append((leader_epoch, first))
        self.log_end_offset = last + 1

    def truncate_to(self, offset: int) -> None:
        while self.batches and self.batches[-1][1] >= offset:
            self.log_end_offset = self.batches.pop()[0]
        self.epochs = [entry for entry in self.epochs if entry[1] < self.log_end_offset]
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)

    def advance_log_start(self, offset: int) -> None:
        self.log_start_offset = max(self.log_start_offset, offset)
        self.epochs = self.epochs_from_start()

    def copy(self) -> "Model":
        return Model(list(self.batches), self.log_start_offset, self.log_end_offset, list(self.epochs))

    def readable(self) -> list[tuple[int, int, bytes]]:
        return [entry for entry in self.batches if entry[1] >= self.log_start_offset]

    def read(self, offset: int, size_bytes_max: int, end_offset: int, at_least_one_batch: bool) -> bytes:
        """What fits; the log may answer less, for it stops where a segment ends."""
        found = b""
        for first, last, data in self.batches:
            if last < offset:
                continue
            fits = len(found) + len(data) <= size_bytes_max or (at_least_one_batch and not found)
            if offset >= end_offset or last >= end_offset or first >= end_offset or not fits:
                break
            found += data
        return found

    def offset_for_timestamp(self, timestamp_ms: int, end_offset: int) -> tuple[int, int, int] | None:
        for _, _, data in self.readable():
            for record in iterate_records(data):
                if record.timestamp_ms >= timestamp_ms and record.offset >= self.log_start_offset:
                    epoch = read_header(data).partition_leader_epoch
                    return (record.timestamp_ms, record.offset, epoch) if record.offset < end_offset else None
        return None

    def producers(self) -> Known:
        """Producer id -> epoch, and first and last sequence and offset of the last five batches, deleted ones too."""
        producers: Known = {}
        for first, last, data in self.batches:
            header = read_header(data)
            if header.producer_id >= 0:
                epoch, known = producers.get(header.producer_id, (-1, []))
                known = known if epoch == header.producer_epoch else []
                last_sequence = (header.base_sequence + header.last_offset_delta) % 2**31
                known = [*known, (header.base_sequence, last_sequence, first, last)][-5:]
                producers[header.producer_id] = (header.producer_epoch, known)
        return producers

    def epochs_from_start(self) -> list[tuple[int, int]]:
        """Epochs that end before the log start are forgotten; the one that holds it begins there."""
        kept = [entry for entry in self.epochs if entry[1] > self.log_start_offset]
        before = [entry for entry in self.epochs if entry[1] <= self.log_start_offset]
        return [(before[-1][0], self.log_start_offset), *kept] if before else kept


def assert_same(log: Log, model: Model, *, may_forget: bool = False) -> None:
    """The log holds what the model holds: offsets, bytes by every way of reading them, producers and epochs.

    In an empty log an epoch that begins at the end says nothing, and a truncation forgets it where a restart does not.
    `may_forget`: a snapshot may have failed, so that what only deleted batches said of a producer is not known.
    """
    assert (log.log_start_offset, log.log_end_offset) == (model.log_start_offset, model.log_end_offset)
    expected = b"".join(data for _, _, data in model.readable())
    for size_bytes_max in (0, 150, 1 << 20):
        assert read_all(log, size_bytes_max) == expected
    for offset in range(log.log_start_offset, log.log_end_offset):
        data = bytes(log.fetch(offset, 0, log.log_end_offset, True).records)
        assert data == model.read(offset, 0, log.log_end_offset, True)
        header = read_header(data)
        assert header.base_offset <= offset <= header.last_offset
    producers = known_producers(log)
    if may_forget:
        producers = with_forgotten(producers, model.producers(), log.base_offsets[0])
    assert producers == model.producers()
    entries, expected_entries = [tuple(entry) for entry in log.epochs.entries], model.epochs_from_start()
    if log.log_start_offset == log.log_end_offset:
        entries = [entry for entry in entries if entry[1] != log.log_end_offset]
        expected_entries = [entry for entry in expected_entries if entry[1] != log.log_end_offset]
    assert entries == expected_entries


def known_producers(log: Log) -> Known:
    return {
        producer_id: (state.epoch, [known[:4] for known in state.batches])
        for producer_id, state in log.producers.states()
    }


def with_forgotten(producers: Known, complete: Known, first_offset: int) -> Known:
    """Adds batches before `first_offset`, where the log begins, that `producers` do not know."""
    filled: Known = {}
    for producer_id, (epoch, batches) in complete.items():
        known_epoch, known = producers.get(producer_id, (epoch, []))
        lacking = batches[: len(batches) - len(known)]
        if all(batch[2] < first_offset for batch in lacking):
            known = lacking + known
        filled[producer_id] = (known_epoch, known)
    return filled


def error_of(use: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        use()
    return caught.value.code


def small_log(disk: MemoryDisk | None = None, *, interval: int = 150) -> tuple[Log, Model]:
    """A log of several segments with batches of one to three records."""
    log = open_log(disk or MemoryDisk(), LogConfig(segment_bytes=400, index_interval_bytes=interval))
    model = Model()
    sequences = [0, 0]
    for number in range(20):
        timestamps = [T0 + 10 * number + 7 * (number % 3) - extra for extra in range(number % 3 + 1)]
        data = batch(*timestamps)
        if number % 4:
            producer = number % 2
            data = batch(*timestamps, value=b"v" * (number % 5), producer=(producer, 0, sequences[producer]))
            sequences[producer] += len(timestamps)
        append(log, data, leader_epoch=number // 6)
        model.append(data, leader_epoch=number // 6)
    return log, model


class Crash(BaseException):
    """The process dies: nothing that handles errors runs any more."""


BYTES_A_FAILURE = 7


class FaultyDisk(MemoryDisk):
    """Counts steps (each byte written, each other change, each sync) and fails at a given one.

    `fail_at(n)` lets n steps happen and raises `error()` in the next one, and in all after it if `for_good`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self._edges: set[int] = set()  # the steps with which something begins, or is nearly done
        self._limit: int | None = None
        self._for_good = False
        self._error: Callable[[], BaseException] = full

    def fail_at(self, step: int, error: Callable[[], BaseException], *, for_good: bool) -> None:
        self.steps, self._limit, self._error, self._for_good = 0, step, error, for_good

    def heal(self) -> None:
        self._limit = None

    def count_anew(self) -> None:
        self.steps = 0
        self._edges.clear()

    def telling_steps(self) -> list[int]:
        """Where to fail, of all that was done since `count_anew`: at each change, before, within and at the end of each
        write, and at every 7th byte between, from one drawn by chance on. Whoever draws it repeats the same ones by the
        seed that a run of the tests prints; many runs try all of them.
        """
        between = range(random.randrange(BYTES_A_FAILURE), self.steps, BYTES_A_FAILURE)
        return sorted(self._edges.union(between))

    def _step(self, count: int = 1) -> int:
        """How many of `count` steps may happen before the failure; all of them if there is none."""
        if self._limit is None or self.steps + count <= self._limit:
            self._edges |= {self.steps, self.steps + count // 2, self.steps + max(0, count - 1)}
            self.steps += count
            return count
        allowed = self._limit - self.steps
        self.steps = self._limit
        if not self._for_good:
            self._limit = None
        return allowed

    def _single(self) -> None:
        if self._step() < 1:
            raise self._error()

    def write(self, content: Content, data: Buffer) -> None:
        allowed = self._step(len(data))
        super().write(content, memoryview(data)[:allowed])
        if allowed < len(data):
            raise self._error()

    def cut(self, content: Content, size_bytes: int) -> None:
        if size_bytes < content.size_bytes:
            self._single()
        super().cut(content, size_bytes)

    def reserve(self, content: Content, size_bytes: int) -> None:
        self._single()
        super().reserve(content, size_bytes)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        if not self.exists(path):
            self._single()
        return super().open(path, size_bytes)

    def sync(self, content: Content) -> None:
        self._single()
        super().sync(content)

    def make_dir(self, path: str) -> None:
        if not self.exists(path):
            self._single()
        super().make_dir(path)

    def rename(self, source: str, target: str) -> None:
        self._single()
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._single()
        super().remove(path)

    def sync_dir(self, path: str) -> None:
        self._single()
        super().sync_dir(path)


class FaultyLosingDisk(FaultyDisk, LosingDisk):
    """Fails at a step, and knows what a loss of power would leave."""


def full() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


STORAGE = ErrorCode.KAFKA_STORAGE_ERROR
