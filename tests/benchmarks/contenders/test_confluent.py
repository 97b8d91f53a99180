"""confluent-kafka: records that were not delivered fail the run, told by a producer of a few lines.

(That the real one sends everything is shown where whole runs are.)
"""

from collections.abc import Callable
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from benchmarks.contenders import confluent
from benchmarks.contenders.job import ContenderFailed

RECORDS: list[tuple[bytes, bytes | None]] = [(b"value", None)] * 2500
TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)  # pyright: ignore[reportPrivateUsage]
Callback = Callable[[KafkaError | None, Any], None]


class FakeProducer:
    """Delivers when it is polled or flushed, but not the record of number `lost`; that of number `failed` fails."""

    def __init__(self, lost: int = -1, failed: int = -1) -> None:
        self.polls = 0
        self._lost, self._failed = lost, failed
        self._queued: list[Callback] = []
        self._number = 0

    def produce(self, topic: str, value: bytes, key: bytes | None, on_delivery: Callback) -> None:
        del topic, value, key
        self._queued.append(on_delivery)

    def poll(self, timeout: float) -> None:
        assert timeout == 0
        self.polls += 1
        self._deliver()

    def flush(self, timeout: float) -> None:
        assert timeout > 0
        self._deliver()

    def _deliver(self) -> None:
        queued, self._queued = self._queued, []
        for on_delivery in queued:
            if self._number != self._lost:
                on_delivery(TIMED_OUT if self._number == self._failed else None, None)
            self._number += 1


def produce_by(fake: FakeProducer) -> None:
    confluent.produce_all(cast("Producer", fake), "t", RECORDS)


def test_it_polls_every_thousand_records() -> None:
    fake = FakeProducer()
    produce_by(fake)
    assert fake.polls == 3


def test_a_record_that_failed_or_was_not_delivered_fails_the_run() -> None:
    with pytest.raises(ContenderFailed, match="delivered 2499 of 2500 records"):
        produce_by(FakeProducer(lost=2499))
    with pytest.raises(KafkaException):
        produce_by(FakeProducer(failed=1))
