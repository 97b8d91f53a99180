"""Long histories against the model: appends, reads, rolls, truncations, deletions, restarts and kills at random."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.protocol.batches.compression import Codec
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.log.logs import DIRECTORY, T0, Model, append, assert_same, batch, open_log, stored

timestamps = st.lists(st.integers(T0 - 50, T0 + 50), min_size=1, max_size=4)
configs = st.builds(
    LogConfig,
    segment_bytes=st.integers(220, 900),
    segment_ms=st.sampled_from([20, 1 << 40]),
    segment_index_bytes=st.sampled_from([40, 1 << 20]),
    index_interval_bytes=st.sampled_from([0, 90, 300, 4096]),
)


class LogHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk()
        self.config = LogConfig()
        self.model = Model()
        self.log: Log = open_log(self.disk)
        self.epoch = 0

    @initialize(config=configs)
    def configure(self, config: LogConfig) -> None:
        self.config = self.log.config = config

    def _producer(self, producer_id: int) -> tuple[int, int]:
        """Epoch and next sequence as the model knows them; (0, 0) for a new one."""
        epoch, known = self.model.producers().get(producer_id, (0, []))
        return epoch, (known[-1][1] + 1) % 2**31 if known else 2**31 - 3

    @rule(times=timestamps, value=st.binary(max_size=40), codec=st.sampled_from([Codec.NONE, Codec.GZIP]))
    def append_plain(self, times: list[int], value: bytes, codec: Codec) -> None:
        self._append(batch(*times, value=value, codec=codec))

    @rule(times=timestamps, producer_id=st.integers(0, 2), bump=st.booleans())
    def append_idempotent(self, times: list[int], producer_id: int, bump: bool) -> None:
        epoch, sequence = self._producer(producer_id)
        if bump:
            epoch, sequence = epoch + 1, 0
        self._append(batch(*times, producer=(producer_id, epoch, sequence)))

    def _append(self, data: bytes) -> None:
        if len(data) > self.config.segment_bytes:
            assert self._refused(data) is ErrorCode.RECORD_LIST_TOO_LARGE
            return
        appended = append(self.log, data, self.epoch)
        assert (appended.base_offset, appended.is_duplicate) == (self.model.log_end_offset, False)
        self.model.append(data, self.epoch)
        assert appended.last_offset == self.model.log_end_offset - 1

    def _refused(self, data: bytes) -> ErrorCode | None:
        try:
            append(self.log, data, self.epoch)
        except KafkaError as error:
            return error.code
        return None

    @rule(producer_id=st.integers(0, 2), back=st.integers(1, 5))
    def send_again(self, producer_id: int, back: int) -> None:
        epoch, known = self.model.producers().get(producer_id, (0, []))
        if len(known) >= back:
            first, last, base_offset, last_offset = known[-back]
            count = (last - first) % 2**31 + 1
            data = batch(*[T0] * count, producer=(producer_id, epoch, first))
            if len(data) <= self.config.segment_bytes:
                appended = append(self.log, data, self.epoch)
                assert (appended.base_offset, appended.last_offset) == (base_offset, last_offset)
                assert appended.is_duplicate

    @rule(producer_id=st.integers(0, 2), gap=st.integers(1, 3))
    def send_with_a_gap(self, producer_id: int, gap: int) -> None:
        if producer_id in self.model.producers():
            epoch, sequence = self._producer(producer_id)
            data = batch(producer=(producer_id, epoch, (sequence + gap) % 2**31))
            assert self._refused(data) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            if epoch:
                data = batch(producer=(producer_id, epoch - 1, sequence))
                assert self._refused(data) is ErrorCode.INVALID_PRODUCER_EPOCH

    @rule()
    def new_leader_epoch(self) -> None:
        self.epoch += 1

    @rule(config=configs)
    def change_config(self, config: LogConfig) -> None:
        self.config = self.log.config = config

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log.base_offsets[0], self.model.log_end_offset + 2), "offset")
        self.log.truncate_to(offset)
        self.model.truncate_to(offset)
        self.epoch += 1

    @rule(data=st.data())
    def advance_log_start(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.model.log_start_offset, self.model.log_end_offset), "offset")
        self.log.advance_log_start(offset)
        self.model.advance_log_start(offset)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.model.log_end_offset

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self._start()

    @rule(tail=st.one_of(st.binary(max_size=100), st.integers(1, 60)), index=st.binary(min_size=1, max_size=30))
    def kill_and_start(self, tail: bytes | int, index: bytes) -> None:
        """With noise or the first bytes of a batch behind the last one, and an index that is not what it was."""
        self.log.close_without_flush()
        names = self.disk.list_dir(DIRECTORY)
        active = max(name for name in names if name.endswith(".log"))
        torn = stored(batch(T0), self.model.log_end_offset)[:tail] if isinstance(tail, int) else tail
        self.disk.open(f"{DIRECTORY}/{active}").append([torn])
        spoiled = sorted(name for name in names if "index" in name)
        self.disk.open(f"{DIRECTORY}/{spoiled[len(index) % len(spoiled)]}").append([index])
        self._start()

    def _start(self) -> None:
        self.log = open_log(self.disk, self.config, log_start_offset=self.model.log_start_offset)
        self.epoch += 1

    @rule(data=st.data(), size_bytes_max=st.integers(0, 1000), at_least_one_batch=st.booleans())
    @precondition(lambda self: self.model.log_end_offset > self.model.log_start_offset)
    def read(self, data: st.DataObject, size_bytes_max: int, at_least_one_batch: bool) -> None:
        offset = data.draw(st.integers(self.model.log_start_offset, self.model.log_end_offset), "offset")
        end_offset = data.draw(st.integers(self.model.log_start_offset, self.model.log_end_offset), "end offset")
        got = bytes(self.log.fetch(offset, size_bytes_max, end_offset, at_least_one_batch).records)
        segment_end = next((base for base in self.log.base_offsets if base > offset), self.model.log_end_offset)
        wanted = self.model.read(offset, size_bytes_max, min(end_offset, segment_end), at_least_one_batch)
        assert got == wanted

    @rule(timestamp=st.integers(T0 - 60, T0 + 60), data=st.data())
    def look_up(self, timestamp: int, data: st.DataObject) -> None:
        end_offset = data.draw(st.integers(self.model.log_start_offset, self.model.log_end_offset), "end offset")
        found = self.log.offset_for_timestamp(timestamp, end_offset)
        assert found == self.model.offset_for_timestamp(timestamp, end_offset)

    @invariant()
    def they_agree(self) -> None:
        assert_same(self.log, self.model)

    def teardown(self) -> None:
        self.log.close()


LogHistory.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestLogHistory: Any = LogHistory.TestCase
