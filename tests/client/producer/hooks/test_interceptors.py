"""Shows the chain of interceptors: order, replacement, and that one which raises loses neither record nor others."""

import logging
from typing import Any

import pytest

from odradek.client.errors.client_errors import ClientError, MetadataMissing
from odradek.client.producer.hooks.interceptors import Interceptor, Interceptors
from odradek.client.producer.record import ProducerRecord
from odradek.client.producer.results.delivery import Ack

RECORD = ProducerRecord("orders", b"value", key=b"k", headers=(("a", b"1"),))
ACK = Ack("orders", 3, 17, 1_700_000_000_000)


class Spy(Interceptor):
    """Writes down what it sees, and puts its name before the value."""

    def __init__(self, name: str, seen: list[tuple[object, ...]]) -> None:
        self.name = name
        self.seen = seen

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.seen.append((self.name, "send", record.value))
        return record._replace(value=self.name.encode() + record.value)

    def on_acknowledgement(self, ack: Ack, error: ClientError | None) -> None:
        self.seen.append((self.name, "ack", ack, error))

    def close(self) -> None:
        self.seen.append((self.name, "close"))


class Broken(Interceptor):
    """Raises wherever it is called."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        raise ValueError("in on_send")

    def on_acknowledgement(self, ack: Ack, error: ClientError | None) -> None:
        raise ValueError("in on_acknowledgement")

    def close(self) -> None:
        raise ValueError("in close")


def chain(*interceptors: Interceptor) -> Interceptors:
    return Interceptors(interceptors, "me")


def test_an_interceptor_may_leave_everything_as_it_is() -> None:
    plain = chain(Interceptor())
    assert plain.on_send(RECORD) is RECORD
    plain.on_acknowledgement(ACK)
    plain.close()


def test_each_sees_what_the_one_before_returned() -> None:
    seen: list[tuple[object, ...]] = []
    both = chain(Spy("a", seen), Spy("b", seen))
    record = both.on_send(RECORD)
    assert record == RECORD._replace(value=b"bavalue")
    both.on_acknowledgement(ACK)
    assert seen == [
        ("a", "send", b"value"),
        ("b", "send", b"avalue"),
        ("a", "ack", ACK, None),
        ("b", "ack", ACK, None),
    ]


def test_a_failure_comes_with_its_error_and_a_partition_if_there_is_one() -> None:
    seen: list[tuple[object, ...]] = []
    error = MetadataMissing("orders")
    chain(Spy("a", seen)).on_refusal(RECORD, error)
    chain(Spy("a", seen)).on_refusal(RECORD._replace(partition=0), error)
    assert seen == [
        ("a", "ack", Ack("orders", -1, -1, -1), error),
        ("a", "ack", Ack("orders", 0, -1, -1), error),
    ]


def test_one_that_raises_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[object, ...]] = []
    three = chain(Spy("a", seen), Broken(), Spy("c", seen))
    assert three.on_send(RECORD).value == b"cavalue"
    three.on_acknowledgement(ACK)
    three.close()
    assert [each[:2] for each in seen] == [
        *(("a", "send"), ("c", "send")),
        *(("a", "ack"), ("c", "ack")),
        *(("c", "close"), ("a", "close")),
    ]
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 3
    for part in ("me: ", "Broken", "in on_send", "in on_acknowledgement", "in close"):
        assert part in caplog.text


@pytest.mark.parametrize("returned", [None, b"value", ("orders", b"value"), {"topic": "orders"}])
def test_one_that_returns_no_record_is_skipped(returned: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Forgetful(Interceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            result: ProducerRecord = returned
            return result

    seen: list[tuple[object, ...]] = []
    assert chain(Forgetful(), Spy("b", seen)).on_send(RECORD).value == b"bvalue"
    assert f"on_send must return a ProducerRecord, not {type(returned).__name__}" in caplog.text


def test_failures_of_each_record_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The first, the tenth, the hundredth and the thousandth are told, each method for itself."""
    broken = chain(Broken())
    for _ in range(1_500):
        assert broken.on_send(RECORD) is RECORD
    counts = [record.args[-1] for record in caplog.records if isinstance(record.args, tuple)]
    assert counts == [1, 10, 100, 1000]
    broken.on_acknowledgement(ACK)
    assert len(caplog.records) == 5


def test_after_close_nobody_is_called() -> None:
    seen: list[tuple[object, ...]] = []
    closed = chain(Spy("a", seen))
    assert closed
    closed.close()
    closed.close()
    assert closed.on_send(RECORD) is RECORD
    closed.on_acknowledgement(ACK)
    assert seen == [("a", "close")]
    assert not closed
    assert not chain()


def test_the_end_of_the_program_is_not_swallowed() -> None:
    """An interceptor's mistake is an Exception; KeyboardInterrupt and cancellation are no mistakes of it."""

    class Interrupted(Interceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chain(Interrupted()).on_send(RECORD)


def test_a_record_is_plain() -> None:
    assert ProducerRecord("orders", b"v") == ("orders", b"v", None, None, (), None)
