"""What the tests of transactions share: batches and markers made by hand, and a model of what they mean.

A log refuses a client's transactional batch while there is no coordinator, so `append_any` lets it pass, as adopting a
directory does: from there on it takes its way through rolls, snapshots, indexes and recovery like any other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from odradek.broker.log.log import Log
from odradek.broker.log.producers import AbortedTxn, Producers
from odradek.broker.log.verifications import Proof
from odradek.protocol.batches.batch import BatchHeader, iterate_batches, read_header
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_records
from tests.broker.log.logs import T0, Known, Model

EPOCH = 3
COORDINATOR_EPOCH = 7


def data_of(producer_id: int, sequence: int, *values: bytes, is_transactional: bool = True) -> bytes:
    """A producer's batch with these values."""
    return build_batch(
        [Record(delta, T0 + delta, None, value, ()) for delta, value in enumerate(values)],
        producer_id=producer_id,
        producer_epoch=EPOCH,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def marker_of(producer_id: int, *, is_abort: bool) -> bytes:
    """The control batch with which a coordinator ends the producer's transaction."""
    key = bytes((0, 0, 0, not is_abort))
    value = bytes(2) + COORDINATOR_EPOCH.to_bytes(4, "big")
    return build_batch(
        [Record(0, T0, key, value, ())],
        producer_id=producer_id,
        producer_epoch=EPOCH,
        base_sequence=-1,
        is_transactional=True,
        is_control=True,
    )


def append_any(log: Log, data: bytes, leader_epoch: int = 0) -> int:
    """Appends what only a coordinator could have let in; the base offset."""
    header = read_header(data)
    proof = verified(log.producers, header)
    return log.append(memoryview(data), header, leader_epoch, 0, proof).base_offset


def verified(producers: Producers, header: BatchHeader) -> Proof:
    """Its coordinator has said that the transaction is under way; sequences are not looked at."""
    producers.verifications.end(header.producer_id)
    verification = producers.verifications.begin(header.producer_id, header.producer_epoch, header.base_sequence, 0)
    return Proof(verification, is_coordinators=True)


@dataclass
class TxnModel(Model):
    """A log with transactions: all of it follows from its batches, one after the other."""

    next_sequences: dict[int, int] = field(default_factory=dict[int, int])

    def write(self, log: Log, producer_id: int, *values: bytes, is_transactional: bool = True) -> None:
        sequence = self.next_sequences.get(producer_id, 0)
        self.next_sequences[producer_id] = sequence + len(values)
        self._add(log, data_of(producer_id, sequence, *values, is_transactional=is_transactional))

    def end(self, log: Log, producer_id: int, *, is_abort: bool) -> None:
        self._add(log, marker_of(producer_id, is_abort=is_abort))

    def _add(self, log: Log, data: bytes) -> None:
        assert append_any(log, data) == self.log_end_offset
        self.append(data)

    def ended(self) -> Iterator[tuple[int, int, int, bool]]:
        """Producer id, first and last offset of each transaction that has ended, and whether it was aborted."""
        yield from self._replay()[0]

    def opened(self) -> dict[int, int]:
        """Producer id -> first offset of the transactions that are open."""
        return self._replay()[1]

    def _replay(self) -> tuple[list[tuple[int, int, int, bool]], dict[int, int]]:
        ended: list[tuple[int, int, int, bool]] = []
        opened: dict[int, int] = {}
        for first, last, data in self.batches:
            header = read_header(data)
            if header.is_control:
                if (began := opened.pop(header.producer_id, None)) is not None:
                    ended.append((header.producer_id, began, last, is_abort_marker(data)))
            elif header.is_transactional:
                opened.setdefault(header.producer_id, first)
        return ended, opened

    def producers(self) -> Known:
        """As for any log; but a marker is none of a producer's batches."""
        return Model([entry for entry in self.batches if not read_header(entry[2]).is_control]).producers()

    def last_stable_offset(self, high_watermark: int) -> int:
        """Before it nothing is undecided, or decided by a marker that may still be lost."""
        unreplicated = [first for _, first, last, _ in self.ended() if last >= high_watermark]
        return min([high_watermark, *self.opened().values(), *unreplicated])

    def aborted(self, offset: int, end_offset: int) -> list[tuple[int, int, int]]:
        """Producer id, first and last offset of what was aborted and overlaps [offset, end_offset)."""
        return [
            (producer_id, first, last)
            for producer_id, first, last, is_aborted in self.ended()
            if is_aborted and first < end_offset and last >= offset
        ]

    def committed(self, offset: int, end_offset: int) -> list[tuple[int, bytes | None]]:
        """Offsets and values that a consumer with read_committed is to see in [offset, end_offset)."""
        aborted = [(producer_id, range(first, last)) for producer_id, first, last in self.aborted(0, end_offset)]
        seen: list[tuple[int, bytes | None]] = []
        for _, _, data in self.readable():
            header = read_header(data)
            if header.is_control:
                continue
            is_aborted = header.is_transactional and any(
                header.producer_id == producer_id and header.base_offset in span for producer_id, span in aborted
            )
            if not is_aborted:
                seen += [(one.offset, one.value) for one in iterate_records(data) if offset <= one.offset < end_offset]
        return seen


def is_abort_marker(data: bytes) -> bool:
    (record,) = iterate_records(data)
    assert record.key is not None
    return bytes(record.key)[3] == 0


def filtered(data: bytes, offset: int, aborted: list[AbortedTxn]) -> list[tuple[int, bytes | None]]:
    """What a client makes of an answer (Fetcher.java): it drops batches of a producer from the first offset of each
    aborted transaction on until it meets an abort marker."""
    waiting = sorted(aborted, key=lambda txn: txn.first_offset)
    dropping: set[int] = set()
    seen: list[tuple[int, bytes | None]] = []
    for position, header in iterate_batches(data):
        while waiting and waiting[0].first_offset <= header.last_offset:
            dropping.add(waiting.pop(0).producer_id)
        batch = data[position : position + header.size_bytes]
        if header.is_control:
            if is_abort_marker(batch):
                dropping.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropping):
            seen += [(one.offset, one.value) for one in iterate_records(batch) if one.offset >= offset]
    return seen


def assert_transactions(log: Log, model: TxnModel, sizes: Sequence[int] = (0, 250, 1 << 20)) -> None:
    """The log knows of transactions what the model knows, and a reader of it sees what is committed.

    `sizes`: of the reader's answers, in bytes.
    """
    opened = model.opened()
    assert log.producers.first_undecided_offset == min(opened.values(), default=None)
    states = {producer_id: state.current_txn_first_offset for producer_id, state in log.producers.states()}
    assert {producer_id: first for producer_id, first in states.items() if first >= 0} == opened
    end = log.log_end_offset
    stable = model.last_stable_offset(end)
    for offset in range(log.log_start_offset, end):
        for size_bytes_max in sizes:
            data = bytes(log.fetch(offset, size_bytes_max, end, True).records)
            found = log.aborted_transactions(offset, data)
            read_end = read_end_of(data)
            assert [tuple(txn[:3]) for txn in found] == model.aborted(offset, read_end), (offset, size_bytes_max)
            if read_end <= stable:
                assert filtered(data, offset, found) == model.committed(offset, read_end)


def read_end_of(data: bytes) -> int:
    *_, (_, last) = iterate_batches(data)
    return last.last_offset + 1
