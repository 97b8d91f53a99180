"""Odradek's adapter where its producer has no room: nothing is left out, told by a producer of a few lines.

(That the real one sends everything is shown where whole runs are.)
"""

from typing import Any, cast

import pytest

from benchmarks.contenders import odradek
from benchmarks.contenders.client_load import ClientLoad, Pair
from benchmarks.contenders.job import OURS, ContenderFailed, Job
from odradek import BufferFull, Producer, ProducerConfig

JOB = Job("latency", OURS, "", "127.0.0.1", 9092, ClientLoad("t", 10, 1, 50, 150))
RECORDS: list[Pair] = [(number.to_bytes(2, "big"), None) for number in range(2500)]


class FakeProducer:
    """Refuses a record so often before it takes it; acknowledges `acknowledged` records of a bulk."""

    def __init__(self, refusals: int = 0, acknowledged: int = 0) -> None:
        self.taken: list[Pair] = []
        self.is_prepared = self.is_flushed = False
        self.values: list[bytes] = []
        self.keys: list[bytes] | None = None
        self._refusals = self._left = refusals
        self._acknowledged = acknowledged

    async def prepare(self, topic: str) -> None:
        self.is_prepared = topic == "t"

    def send_nowait(self, topic: str, value: bytes, *, key: bytes | None) -> None:
        assert topic == "t"
        if self._left and len(self.taken) == 1500:
            self._left -= 1
            raise BufferFull(len(value), 0)
        self.taken.append((value, key))

    async def flush(self) -> None:
        self.is_flushed = True

    async def send_batch(self, topic: str, values: list[bytes], *, keys: list[bytes] | None) -> list[Any]:
        assert topic == "t"
        self.values, self.keys = values, keys
        return [None] * self._acknowledged


class Connected(Exception):
    """Instead of a connection."""


async def test_all_have_the_same_settings_and_awaited_sends_do_not_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    config = odradek.producer_of(JOB).config
    assert (config.acks, config.is_idempotent, config.linger_ms, config.batch_size) == (-1, True, 5, 65536)
    configs: list[ProducerConfig] = []

    async def start(producer: Producer) -> Producer:
        configs.append(producer.config)
        raise Connected

    monkeypatch.setattr(Producer, "start", start)
    with pytest.raises(Connected):
        async with odradek.awaited(JOB):
            pass
    assert [config.linger_ms for config in configs] == [0]


async def test_a_record_that_there_is_no_room_for_is_sent_again_in_its_place() -> None:
    fake = FakeProducer(refusals=5)
    await odradek.send_all_nowait(cast("Producer", fake), "t", RECORDS)
    assert fake.taken == RECORDS
    assert fake.is_prepared
    assert fake.is_flushed


async def test_a_bulk_has_keys_if_its_records_have_and_must_be_acknowledged_in_full() -> None:
    fake = FakeProducer(acknowledged=2)
    await odradek.send_in_bulk(cast("Producer", fake), "t", [(b"v", b"k"), (b"w", b"l")])
    assert (fake.values, fake.keys) == ([b"v", b"w"], [b"k", b"l"])
    await odradek.send_in_bulk(cast("Producer", fake), "t", [(b"v", None), (b"w", None)])
    assert fake.values == [b"v", b"w"]
    assert fake.keys is None
    with pytest.raises(ContenderFailed, match="acknowledged 2 of 3 records"):
        await odradek.send_in_bulk(cast("Producer", fake), "t", RECORDS[:3])


async def test_a_buffer_is_full_when_there_is_no_room_after_the_sender_had_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(odradek, "SETTLE_S", 0.0)
    for refusals, has_room in ((0, True), (1, True), (2, False)):
        fake = FakeProducer(refusals)
        fake.taken = RECORDS[:1500]
        assert await odradek.take(cast("Producer", fake), "t", b"v", None) is has_room


def test_a_record_without_an_offset_fails_the_run() -> None:
    odradek.check(0)
    with pytest.raises(ContenderFailed, match="without an offset"):
        odradek.check(-1)
