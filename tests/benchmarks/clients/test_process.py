"""A contender's process: what it says is heard, and where it fails, or takes too long, one learns why."""

import time

import pytest

from benchmarks.clients.process import contending
from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import ContenderFailed, Job
from processes.free_ports import free_ports

LOAD = ClientLoad("t", count=10, warm_count=1, value_bytes_min=50, value_bytes_max=150)


def job(client: str, idiom: str) -> Job:
    (port,) = free_ports(1)
    return Job("speed", client, idiom, "127.0.0.1", port, LOAD)


def test_a_failure_tells_what_the_process_printed() -> None:
    with (
        pytest.raises(ContenderFailed, match=r"confluent-kafka, no such idiom: ended with 1\n(.|\n)*KeyError"),
        contending(job("confluent-kafka", "no such idiom")) as conversation,
    ):
        assert conversation.identity.startswith("confluent-kafka 2.16")
        conversation.hear()


def test_a_failure_counts_even_when_nothing_more_was_to_be_heard() -> None:
    with pytest.raises(ContenderFailed, match="ended with 1"), contending(job("confluent-kafka", "no such idiom")):
        pass


def test_a_process_that_does_not_end_in_time_is_ended() -> None:
    """Nobody listens where it is to send to, and librdkafka tries for five minutes."""
    started = time.monotonic()
    with (
        pytest.raises(ContenderFailed, match="ended with -9"),
        contending(job("confluent-kafka", "produce"), timeout_s=3.0) as conversation,
    ):
        conversation.hear()
    assert time.monotonic() - started < 20
