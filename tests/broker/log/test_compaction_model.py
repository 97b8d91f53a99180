"""Long histories of a compacted partition against a model in plain Python: appends with keys and tombstones, rolls,
rounds of compaction with much memory and with little, retention, DeleteRecords, truncations, stops and kills at random.

With `test_log_model.py` they are 200 histories. Hypothesis prints how to repeat one that fails.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.broker.log.offset_map import SLOT_BYTES
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.records import iterate_records
from tests.broker.keeping import COMPACT, DIRECTORY, Kept
from tests.broker.log.compacted_logs import KeyValue
from tests.broker.log.logs import read_all

DELETE_RETENTION_MS = 50
RETENTION_MS = 300
CONFIGS = {**COMPACT, "delete.retention.ms": str(DELETE_RETENTION_MS), "retention.ms": str(RETENTION_MS)}
PRODUCERS = 3


# ------------------------------------------------------------------------------------------------------------ the model
@dataclass
class Batch:
    last_offset: int
    time_ms: int
    records: dict[int, KeyValue]
    horizon_ms: int | None = None


@dataclass
class Model:
    """What a compacted log is."""

    batches: list[Batch] = field(default_factory=list[Batch])
    log_start: int = 0
    end: int = 0
    checkpoint: int | None = None
    epochs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    producers: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])
    """Of each batch of a producer: its offset, who, the epoch, the last sequence."""

    def append(self, records: list[KeyValue], time_ms: int, leader_epoch: int) -> None:
        if not self.epochs or leader_epoch > self.epochs[-1][0]:
            self.epochs.append((leader_epoch, self.end))
        first, self.end = self.end, self.end + len(records)
        times_ms = time_ms + len(records) - 1
        self.batches.append(Batch(self.end - 1, times_ms, dict(enumerate(records, first))))

    def dirty_from(self) -> int:
        """Where the next round begins: at the checkpoint, if there can be one."""
        is_possible = self.checkpoint is not None and self.log_start <= self.checkpoint <= self.end
        return self.checkpoint if is_possible and self.checkpoint is not None else self.log_start

    def clean(self, end: int, active: int, now_ms: int) -> None:
        """A round that took the keys up to `end` and leaves the segment `active` alone."""
        newest: dict[bytes | None, int] = {}
        for batch in self.batches:
            newest |= {key: at for at, (key, _) in batch.records.items() if self.dirty_from() <= at < end}
        for batch in self.batches:
            if batch.last_offset >= active or min(batch.records, default=end) >= end:
                continue
            is_over = batch.horizon_ms is not None and batch.horizon_ms <= now_ms
            batch.records = {
                at: (key, value)
                for at, (key, value) in batch.records.items()
                if at >= end or (at >= newest.get(key, -1) and (value is not None or not is_over))
            }
            tombstones = [at for at, (_, value) in batch.records.items() if value is None]
            if tombstones and max(tombstones) < end and batch.horizon_ms is None:
                batch.horizon_ms = now_ms + DELETE_RETENTION_MS
        self.checkpoint = end

    def delete_before(self, offset: int) -> None:
        self.log_start = max(self.log_start, offset)

    def truncate(self, offset: int) -> None:
        while self.batches and self.batches[-1].last_offset >= offset:
            self.end = min(self.batches.pop().records)
        self.log_start = min(self.log_start, self.end)
        self.epochs = [entry for entry in self.epochs if entry[1] < self.end]
        self.producers = [entry for entry in self.producers if entry[0] < self.end]

    def records(self) -> list[tuple[int, KeyValue]]:
        return [(at, record) for batch in self.batches for at, record in batch.records.items() if at >= self.log_start]

    def known(self) -> dict[int, tuple[int, int]]:
        """Of each producer its epoch and its last sequence."""
        return {producer: (epoch, sequence) for _, producer, epoch, sequence in self.producers}

    def epochs_from_start(self) -> list[tuple[int, int]]:
        kept = [entry for entry in self.epochs if entry[1] > self.log_start]
        before = [entry for entry in self.epochs if entry[1] <= self.log_start]
        return [(before[-1][0], self.log_start), *kept] if before else kept


# ------------------------------------------------------------------------------------------------------------ histories
keys = st.sampled_from([b"a", b"b", b"c", b"d" * 30])
values = st.one_of(st.none(), st.binary(max_size=5), st.just(b"v" * 30))
contents = st.lists(st.tuples(keys, values), min_size=1, max_size=4)


class CompactedHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.kept: Kept = Kept()

    @initialize(
        policy=st.sampled_from(["compact", "compact,delete"]),
        segment_bytes=st.sampled_from([350, 500, 2000]),
        group_bytes=st.sampled_from([1, 600, 1 << 20]),
        interval=st.sampled_from([0, 100, 4096]),
        keys_max=st.sampled_from([1, 2, 1000]),
    )
    def configure(self, policy: str, segment_bytes: int, group_bytes: int, interval: int, keys_max: int) -> None:
        self.kept = Kept(
            {**CONFIGS, "cleanup.policy": policy},
            {
                "log.cleaner.dedupe.buffer.size": str(SLOT_BYTES * keys_max),
                "log.cleaner.io.buffer.load.factor": "1",
            },
            segment_bytes=segment_bytes,
            group_bytes=group_bytes,
            index_interval_bytes=interval,
        )

    @rule(records=contents, producer=st.integers(0, PRODUCERS), bumps=st.booleans(), passed_ms=st.integers(0, 20))
    def append(self, records: list[KeyValue], producer: int, bumps: bool, passed_ms: int) -> None:
        """Producer 0 is none."""
        kept, model = self.kept, self.model
        kept.environment.time_ms += passed_ms
        ids = -1, -1, -1
        if producer:
            epoch, last = model.known().get(producer, (0, -1))
            ids = (producer, epoch + 1, 0) if bumps else (producer, epoch, last + 1)
            last_sequence = ids[2] + len(records) - 1
            model.producers.append((model.end, producer, ids[1], last_sequence))
        assert kept.append(*records, producer=ids) == model.end
        model.append(records, kept.environment.time_ms, kept.leader_epoch)

    @rule()
    def roll(self) -> None:
        self.kept.roll()

    @rule(passed_ms=st.sampled_from([10, DELETE_RETENTION_MS, 200]))
    def pass_time(self, passed_ms: int) -> None:
        self.kept.environment.time_ms += passed_ms

    @rule()
    def clean(self) -> None:
        """Round after round, of which each ends where the memory did."""
        kept, model = self.kept, self.model
        noted: list[int] = []
        write = kept.checkpoints.writing_cleaned

        def noting() -> Any:
            assert kept.checkpoint is not None
            noted.append(kept.checkpoint)
            return write()

        kept.checkpoints.writing_cleaned = noting  # type: ignore[method-assign]
        active = kept.log.base_offsets[-1]
        kept.clean()
        kept.checkpoints.writing_cleaned = write  # type: ignore[method-assign]
        for end in noted:
            if end == model.log_start and model.checkpoint is not None and model.dirty_from() != model.checkpoint:
                model.checkpoint = end  # the checkpoint was impossible
            else:
                assert model.dirty_from() < end <= active, "each round gets further"
                model.clean(end, active, kept.environment.time_ms)
        assert model.dirty_from() >= active or not any(
            model.dirty_from() <= batch.last_offset < active for batch in model.batches
        ), "there was more to be done"

    @rule()
    def retain(self) -> None:
        kept, model = self.kept, self.model
        kept.retain()
        log_start = kept.log.log_start_offset
        if log_start > model.log_start:
            assert "delete" in kept.configs["cleanup.policy"]
            gone = [batch for batch in model.batches if batch.records and batch.last_offset < log_start]
            assert all(kept.environment.time_ms - batch.time_ms > RETENTION_MS for batch in gone)
            model.delete_before(log_start)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.model.log_start, self.model.end), "offset")
        self.kept.delete_records(offset)
        self.model.delete_before(offset)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """As a follower does it: never what was committed, which alone is compacted."""
        least = max(self.model.log_start, self.model.checkpoint or 0, self.kept.log.base_offsets[-1])
        ends = [batch.last_offset + 1 for batch in self.model.batches if batch.last_offset + 1 >= least]
        if ends:
            offset = data.draw(st.sampled_from(ends), "offset")
            self.kept.log.truncate_to(offset)
            self.kept.settle()  # `Log.truncate_to` asks for the checkpoint
            self.model.truncate(offset)
            self.kept.partition.high_watermark.restart(self.model.end)
            self.new_leader()

    def new_leader(self) -> None:
        self.kept.leader_epoch += 1
        self.kept.partition.become_leader(self.kept.leader_epoch, self.kept.partition.replicas)

    @rule()
    def remove_what_was_replaced(self) -> None:
        self.kept.remove_retired()
        assert not any(name.endswith((".deleted", ".swap")) for name in self.kept.names)

    @rule()
    def write_recovery_points(self) -> None:
        self.kept.settle()

    @rule()
    def stop_and_start(self) -> None:
        self.kept.restart()

    @rule()
    def kill_and_start(self) -> None:
        self.kept.kill_and_start()

    @rule(name=st.integers(0, 20), index=st.binary(min_size=1, max_size=30))
    def kill_and_start_with_an_index_that_is_not_what_it_was(self, name: int, index: bytes) -> None:
        self.kept.kill()
        indexes = [found for found in self.kept.names if found.endswith((".index", ".timeindex"))]
        self.kept.disk.open(f"{DIRECTORY}/{indexes[name % len(indexes)]}").append([index])
        self.kept.start()

    @rule()
    @precondition(lambda self: self.model.log_start == 0)
    def kill_and_start_without_snapshots(self) -> None:
        """What is left of the batches is enough to know all producers by."""
        self.kept.kill()
        for name in self.kept.names:
            if name.endswith(".snapshot"):
                self.kept.disk.remove(f"{DIRECTORY}/{name}")
        self.kept.start()

    @invariant()
    def they_agree(self) -> None:
        log, model = self.kept.log, self.model
        assert (log.log_start_offset, log.log_end_offset) == (model.log_start, model.end)
        found: list[tuple[int, KeyValue]] = []
        data, position = read_all(log) if self.has_content() else b"", 0
        while position < len(data):
            header = read_header(data, position)
            batch = data[position : position + header.size_bytes]
            position += header.size_bytes
            found += [(record.offset, (record.key, record.value)) for record in iterate_records(batch)]
        assert [entry for entry in found if entry[0] >= model.log_start] == model.records()
        known = {producer: (state.epoch, state.last_sequence) for producer, state in log.producers.states()}
        assert known == model.known()
        entries = [tuple(entry) for entry in log.epochs.entries]
        if model.log_start == model.end:  # an epoch that begins at the end of an empty log says nothing
            entries = [entry for entry in entries if entry[1] != model.end]
            assert entries == [entry for entry in model.epochs_from_start() if entry[1] != model.end]
        else:
            assert entries == model.epochs_from_start()

    def has_content(self) -> bool:
        return self.model.log_start < self.model.end

    def teardown(self) -> None:
        self.kept.stop()


CompactedHistory.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestCompactedHistory: Any = CompactedHistory.TestCase
