"""What the tests of damaged files share: a log that was stopped or killed, and whether it still answers everything."""

from collections.abc import Iterator

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from tests.broker.log.logs import DIRECTORY, T0, Model, append, batch, known_producers, open_log

CONFIG = LogConfig(segment_bytes=480, index_interval_bytes=100)
COUNT = 16


def timestamps(number: int) -> tuple[int, ...]:
    """They rise, now and then by nothing, and every fifth batch is late."""
    at = T0 + 10 * (number - number % 2)
    return (at - 25,) if number % 5 == 4 else (at, at - 3)


def add(log: Log, model: Model, number: int) -> None:
    sequence = sum(len(timestamps(before)) for before in range(number))
    data = batch(*timestamps(number), value=b"v" * (number % 5), producer=(1, 0, sequence))
    append(log, data, leader_epoch=number // 6)
    model.append(data, leader_epoch=number // 6)


class Written:
    """A log on a disk whose last process was stopped, or killed after its closed segments had been synced."""

    def __init__(self, *, is_clean: bool) -> None:
        self.is_clean = is_clean
        self.disk, self.model = MemoryDisk(), Model()
        log = open_log(self.disk, CONFIG)
        for number in range(COUNT):
            add(log, self.model, number)
        assert len(log.base_offsets) > 2
        if is_clean:
            log.close()
        else:
            flush = log.begin_flush(settle=True, with_active=False)
            assert flush is not None
            flush.run()
            log.end_flush(flush)
            log.segments.active.write_indexes()
            log.close_without_flush()
        self.bases = log.base_offsets
        self.recovery_point = log.recovery_point

    def file(self, suffix: str, which: int) -> str:
        return f"{self.bases[which]:020d}{suffix}"

    def flips(self, name: str, stride: int = 1) -> Iterator[tuple[MemoryDisk, int]]:
        """A copy of the disk for each flipped bit of the file, or for every so many, with the byte's position."""
        good = self.disk.read_whole(f"{DIRECTORY}/{name}")
        assert good, "a file without bytes proves nothing"
        for bit in range(0, 8 * len(good), stride):
            position = bit // 8
            broken = good[:position] + bytes([good[position] ^ 1 << bit % 8]) + good[position + 1 :]
            copy = MemoryDisk()
            copy.make_dir(DIRECTORY)
            for other in self.disk.list_dir(DIRECTORY):
                content = broken if other == name else self.disk.read_whole(f"{DIRECTORY}/{other}")
                copy.write_whole(f"{DIRECTORY}/{other}", content)
            yield copy, position

    def open(self, disk: MemoryDisk) -> Log:
        return open_log(disk, CONFIG, recovery_point=self.recovery_point, is_clean=self.is_clean)


def max_timestamp_of(model: Model) -> tuple[int, int]:
    """The largest timestamp, and the first offset that has it."""
    best = (-1, -1)
    for number in range(len(model.batches)):
        first, _, _ = model.batches[number]
        for delta, timestamp in enumerate(timestamps(number)):
            if timestamp > best[0]:
                best = (timestamp, first + delta)
    return best


def check_reads(log: Log, model: Model, context: object) -> None:
    assert (log.log_start_offset, log.log_end_offset) == (model.log_start_offset, model.log_end_offset), context
    end = model.log_end_offset
    for offset in range(end):
        for size_bytes_max, end_offset in ((0, end), (400, offset + 4))[offset % 2 :]:
            data = bytes(log.fetch(offset, size_bytes_max, end_offset, True).records)
            wanted = model.read(offset, size_bytes_max, end_offset, True)
            assert data == wanted[: len(data)], (context, offset)
            assert bool(data) == bool(wanted), (context, offset)


def check_lookups(log: Log, model: Model, context: object) -> None:
    end = model.log_end_offset
    for timestamp in range(T0 - 5, T0 + 10 * len(model.batches) + 10, 10):
        found = log.offset_for_timestamp(timestamp, end)
        assert found == model.offset_for_timestamp(timestamp, end), (context, timestamp - T0)
    largest = log.offset_of_max_timestamp(end)
    assert largest is not None
    assert largest[:2] == max_timestamp_of(model), context


def check_goes_on(log: Log, model: Model, disk: MemoryDisk, context: object) -> None:
    """Appends find their place, entries are added to the indexes, and the next start finds it all."""
    model = model.copy()
    log.begin_epoch(COUNT // 6)
    for number in range(COUNT, COUNT + 7):
        add(log, model, number)
    check_reads(log, model, context)
    check_lookups(log, model, context)
    log.close()
    again = open_log(disk, CONFIG, recovery_point=log.recovery_point, is_clean=True)
    check_reads(again, model, context)
    check_lookups(again, model, context)
    assert known_producers(again) == model.producers(), context


def check_epochs(log: Log, model: Model, context: object) -> None:
    """Each epoch ends where the next one begins, by every question that a follower or a consumer may ask."""
    starts = [*(offset for _, offset in model.epochs[1:]), model.log_end_offset]
    for (epoch, start), end in zip(model.epochs, starts, strict=True):
        assert log.epochs.end_offset_for(epoch, log.log_end_offset) == (epoch, end), context
        assert log.epochs.epoch_for(start) == log.epochs.epoch_for(end - 1) == epoch, context
