"""Random histories of a log for the tests of `odradek dump`: producers, transactions, rolls, compaction, retention."""

import random

from odradek.protocol.batches.compression import Codec
from tests.broker.log.compacted_logs import T0, KeyValue, MemoryLog, data_batch, marker_batch, open_transactions

FENCED = 4


class History:
    """Producer 0 is none, 1 and 5 are idempotent, 2 and 3 write transactions, and FENCED was fenced before it wrote."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.log = MemoryLog()
        self.epochs: dict[int, int] = {1: 0, 2: 0, 3: 0, FENCED: 9, 5: 1}
        self.sequences: dict[int, int] = dict.fromkeys((1, 2, 3, 5), 0)
        self.now_ms = T0

    def grow(self, steps: int) -> None:
        for _ in range(steps):
            self.now_ms += self.rng.randrange(50)
            kind = self.rng.random()
            if kind < 0.2:
                self.end(self.rng.choice((2, 3, FENCED)), bumps=self.rng.random() < 0.2)
            elif kind < 0.35:
                self.log.roll(gap=self.rng.choice((0, 0, 0, 5)))
            else:
                self.produce(self.rng.choice((0, 1, 2, 3, 5)))

    def produce(self, producer_id: int) -> None:
        records = [self.record() for _ in range(self.rng.randrange(1, 5))]
        producer = (-1, -1, -1)
        if producer_id:
            producer = producer_id, self.epochs[producer_id], self.sequences[producer_id]
            self.sequences[producer_id] += len(records)
        self.log.append(
            data_batch(
                self.log.next_offset,
                *records,
                timestamp_ms=self.now_ms + self.rng.randrange(-100, 100),
                producer=producer,
                is_transactional=producer_id in (2, 3),
                codec=self.rng.choice(list(Codec)),
                append_time_ms=self.now_ms if self.rng.random() < 0.2 else None,
            )
        )

    def record(self) -> KeyValue:
        key = b"key-%d" % self.rng.randrange(8)
        return key, None if self.rng.random() < 0.3 else self.rng.randbytes(self.rng.randrange(20))

    def end(self, producer_id: int, *, bumps: bool) -> None:
        """Also where no transaction is open: a fence."""
        if bumps and producer_id in self.sequences:
            self.epochs[producer_id] += 1
            self.sequences[producer_id] = 0
        offset, epoch, is_commit = self.log.next_offset, self.epochs[producer_id], self.rng.random() < 0.5
        self.log.append(marker_batch(offset, producer_id, epoch, is_commit=is_commit, timestamp_ms=self.now_ms))

    def compact(self) -> None:
        """Ends all transactions, so that everything but the active segment can be cleaned."""
        for producer_id in open_transactions(self.log.appended):
            self.end(producer_id, bumps=False)
        self.log.roll()
        self.log.clean(self.now_ms, delete_retention_ms=100)
        self.now_ms += 200

    def drop_oldest(self) -> None:
        """As retention does."""
        if len(self.log.segments) > 2:
            del self.log.segments[: self.rng.randrange(1, len(self.log.segments) - 1)]
