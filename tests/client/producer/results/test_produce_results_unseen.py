"""Failures that nobody saw are counted, logged now and then, and reported once; those that somebody saw are not.

By examples, with a clock that the test moves and a hook that counts.
"""

import logging
from array import array
from contextvars import copy_context
from typing import Any

import pytest

from odradek.client.errors.client_errors import (
    BrokerError,
    ClientError,
    ConnectionFailed,
    DeliveryTimeout,
    UndeliveredRecords,
)
from odradek.client.metrics.metrics import UNOBSERVED_ERROR_TOTAL
from odradek.client.producer.results.produce_results import (
    FAILED_RESULTS_MAX,
    LOG_INTERVAL_MS,
    SAMPLE_MAX,
    ProduceResult,
    Results,
)
from odradek.protocol.errors import ErrorCode
from odradek.runtime.metric import Metric


def lost() -> ClientError:
    return ConnectionFailed("broker 1 (localhost:9092)")


def new_result(count: int, owner: Results) -> ProduceResult:
    result = ProduceResult(owner, "orders", 3)
    result.count = count
    result.timestamps = array("q", range(count))
    return result


class Clock:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now_ms = 5_000.0

    def __call__(self) -> float:
        return self.now_ms


class Counter:
    """A hook that counts."""

    def __init__(self) -> None:
        self.counted: list[tuple[Metric, float]] = []

    def count(self, metric: Metric, amount: float, *labels: str) -> None:
        self.counted.append((metric, amount))

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        raise NotImplementedError

    def watch(self, metric: Metric, read: Any, *labels: str) -> Any:
        raise NotImplementedError


def watched(metrics: Counter | None = None) -> tuple[Results, Clock]:
    clock = Clock()
    loop: Any = object()
    return Results(loop, clock, Counter() if metrics is None else metrics, "shop"), clock


def test_nothing_to_report() -> None:
    metrics = Counter()
    owner, _ = watched(metrics)
    owner.report()
    seen = new_result(1, owner)
    seen.observe((0,))
    seen.fail(lost())
    new_result(3, owner).complete(0, -1)
    owner.report()
    assert metrics.counted == []


def test_records_that_failed_unseen_are_reported_once() -> None:
    metrics = Counter()
    owner, _ = watched(metrics)
    error, own = lost(), BrokerError(ErrorCode.INVALID_RECORD)
    result = new_result(3, owner)
    result.observe((1,))
    result.fail(error, {2: own})
    with pytest.raises(UndeliveredRecords) as caught:
        owner.report()
    assert caught.value.count == 2
    assert caught.value.errors == (("orders", 3, error), ("orders", 3, own))
    assert metrics.counted == [(UNOBSERVED_ERROR_TOTAL, 2)]
    owner.report()


def test_records_that_somebody_looks_at_before_the_report_are_left_out() -> None:
    owner, _ = watched()
    result = new_result(3, owner)
    result.fail(lost())
    assert result.error_of(0) is not None
    with pytest.raises(ConnectionFailed):
        result.ack(2)
    assert result.peek(1) is not None
    with pytest.raises(UndeliveredRecords) as caught:
        owner.report()
    assert caught.value.count == 1
    assert len(caught.value.errors) == 1


def test_callbacks_are_witnesses_but_watchers_are_not() -> None:
    metrics = Counter()
    owner, _ = watched(metrics)
    result = new_result(2, owner)
    result.add_callback(0, len, "", copy_context(), True)
    result.add_callback(1, len, "", copy_context(), False)
    result.fail(lost())
    assert metrics.counted == [(UNOBSERVED_ERROR_TOTAL, 1)]
    with pytest.raises(UndeliveredRecords) as caught:
        owner.report()
    assert caught.value.count == 1


def test_of_many_failures_the_number_is_exact_and_a_few_are_named() -> None:
    """More results than are kept, and more records in each than are named. Nobody saw them but the last one's first."""
    owner, _ = watched()
    results = [new_result(7, owner) for _ in range(FAILED_RESULTS_MAX + 5)]
    for result in results:
        result.fail(lost())
    results[0].observe(range(7))  # too late: it is not kept any more
    results[-1].observe((0,))
    with pytest.raises(UndeliveredRecords) as caught:
        owner.report()
    assert caught.value.count == 7 * len(results) - 1
    assert len(caught.value.errors) == SAMPLE_MAX
    owner.report()


def test_what_was_forgotten_is_reported_once() -> None:
    owner, _ = watched()
    for _ in range(FAILED_RESULTS_MAX + 1):
        new_result(1, owner).fail(lost())
    with pytest.raises(UndeliveredRecords):
        owner.report()
    new_result(1, owner).fail(lost())
    with pytest.raises(UndeliveredRecords) as caught:
        owner.report()
    assert caught.value.count == 1


def test_failures_that_nobody_waits_for_are_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    """The first at once, with the client's id; then, after a while, all since in one line."""
    owner, clock = watched()
    seen = new_result(1, owner)
    seen.observe((0,))
    with caplog.at_level(logging.ERROR, "odradek.client.producer.results.produce_results"):
        seen.fail(lost())
        assert caplog.messages == []
        new_result(2, owner).fail(DeliveryTimeout("orders", 3, 120_000))
        new_result(3, owner).fail(lost())
        clock.now_ms += LOG_INTERVAL_MS - 1
        new_result(4, owner).fail(lost())
        assert len(caplog.messages) == 1
        assert caplog.messages[0].startswith("shop: 2 record(s)")
        assert "orders-3" in caplog.messages[0]
        assert "delivery_timeout_ms" in caplog.messages[0]
        clock.now_ms += 1
        new_result(5, owner).fail(lost())
        assert [message.partition(" record")[0] for message in caplog.messages] == ["shop: 2", "shop: 12"]


def test_a_failed_result_keeps_no_timestamps() -> None:
    """It may be kept until the next report, and no Ack of it will ever be made."""
    owner, _ = watched()
    result = new_result(3, owner)
    result.fail(lost())
    assert result.timestamps is None
