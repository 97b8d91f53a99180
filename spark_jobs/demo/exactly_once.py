"""The demo's copy of the flights by carrier, exactly once, though the copier is killed in the middle of a transaction.

A copier (`flight_copier.py`) writes each flight to a topic of several partitions, a carrier's flights into one of them.
Half-way it is killed by SIGKILL when records of an open transaction are in the log, and then the broker is. Another
copier with the same transactional id goes on. In the end a reader of read_committed has to find each carrier's flights,
once and in their order, and a reader of read_uncommitted has to find what the killed copier had left open, too.
"""

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from rich.console import Console

from odradek.spark_jobs.demo.broker_process import BrokerProcess
from odradek.spark_jobs.demo.client_process import ClientProcess
from odradek.spark_jobs.demo.flight_copier import FLIGHTS_IN_TRANSACTION
from odradek.spark_jobs.demo.load import REPORT_EVERY, create_topics
from odradek.spark_jobs.demo.steps import Completed, DemoFailed, Steps
from odradek.spark_jobs.demo.verify import read_records

TOPIC = "flights-by-carrier"
PARTITIONS = 4
COPIER = "flight-copier"
PROGRESS_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.02

Records = Sequence[tuple[bytes, bytes]]


class Copied(NamedTuple):
    """How it went: flights that were committed when the copier was killed, copies of more that were open then and are
    aborted, and what is committed in the end."""

    at_kill: int
    aborted: int
    flights: int
    carriers: int


def copy_exactly_once(broker: BrokerProcess, source: str, records: Records, directory: Path, steps: Steps) -> Copied:
    """Copies `source`, a topic of one partition that holds `records`. Raises DemoFailed at the first difference."""
    create_topics(broker.address, TOPIC, partitions=PARTITIONS)
    half = len(records) // 2
    with (
        steps.step("copy by carrier, SIGKILL in a transaction", half) as completed,
        start_copier(broker.address, source, directory / "copier-1.log") as copier,
        Watch(broker.address, source) as watch,
    ):
        at_kill = kill_in_a_transaction(copier, watch, half, len(records), completed)
    with steps.step("SIGKILL the broker, too, start it again"):
        broker.kill()
        broker.start()
        with Watch(broker.address, source) as watch:
            left_open = watch.open_offsets()
    with (
        steps.step("another copier goes on", len(records) - at_kill) as completed,
        start_copier(broker.address, source, directory / "copier-2.log") as copier,
        Watch(broker.address, source) as watch,
    ):
        wait_until_committed(copier, watch, len(records), lambda count: completed(count - at_kill))
    with steps.step("read what is committed and compare", len(records)) as completed:
        carriers = compare(records, read_records(broker.address, TOPIC, "read_committed"), completed)
        aborted = aborted_count(broker.address, left_open)
    return Copied(at_kill, aborted, len(records), carriers)


def start_copier(bootstrap: str, source: str, log: Path) -> ClientProcess:
    return ClientProcess("odradek.spark_jobs.demo.flight_copier", bootstrap, source, TOPIC, COPIER, log=log)


class Watch:
    """What others can see of a copier's work; a context manager."""

    def __init__(self, bootstrap: str, source: str) -> None:
        self._source = TopicPartition(source, 0)
        self._targets = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        # The first one asks for the offsets of the copier's group, and does not join it; neither of them reads.
        self._uncommitted = KafkaConsumer(bootstrap_servers=bootstrap, group_id=COPIER, enable_auto_commit=False)
        self._committed = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, isolation_level="read_committed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._uncommitted.close()
        self._committed.close()

    def committed(self) -> int:
        """How many flights are copied by committed transactions: the offset that these commit for the group."""
        return self._uncommitted.committed(self._source) or 0

    def open_offsets(self) -> dict[int, range]:
        """Where records of an open transaction are, by partition: behind the last stable offset."""
        stable = self._committed.end_offsets(self._targets)
        ends = self._uncommitted.end_offsets(self._targets)
        return {target.partition: range(stable[target], ends[target]) for target in self._targets}


def kill_in_a_transaction(copier: ClientProcess, watch: Watch, at: int, end: int, completed: Completed) -> int:
    """SIGKILL, once `at` of `end` flights are committed and some, but not all, records of the next transaction are in
    the log; returns how many flights are committed. Raises DemoFailed.

    The copier is paused while that is looked at, so that the kill finds what was seen.
    """
    deadline = time.monotonic() + PROGRESS_TIMEOUT_S
    while (committed := watch.committed()) < end:
        completed(committed)
        if committed >= at:
            copier.pause()
            # Twice: the broker may have been busy with the end of the transaction before.
            first, second = watch.open_offsets(), watch.open_offsets()
            if first == second and 0 < sum(map(len, second.values())) < FLIGHTS_IN_TRANSACTION:
                committed = watch.committed()
                copier.kill()
                return committed
            copier.resume()
        _wait(copier, committed, deadline)
    raise DemoFailed("the copier had copied everything before it could be killed in a transaction")


def wait_until_committed(copier: ClientProcess, watch: Watch, count: int, completed: Completed) -> None:
    """Returns when the copies of `count` flights are committed. Raises DemoFailed."""
    deadline = time.monotonic() + PROGRESS_TIMEOUT_S
    while (committed := watch.committed()) < count:
        completed(committed)
        _wait(copier, committed, deadline)


def _wait(copier: ClientProcess, committed: int, deadline: float) -> None:
    if not copier.is_running:
        raise DemoFailed(f"the copier has ended: {copier.errors()}")
    if time.monotonic() > deadline:
        raise DemoFailed(f"the copier has committed no more than {committed:,} flights after {PROGRESS_TIMEOUT_S:g} s")
    time.sleep(POLL_INTERVAL_S)  # between two looks at what another process has done


def compare(records: Iterable[tuple[bytes, bytes]], copies: Iterable[ConsumerRecord], completed: Completed) -> int:
    """Raises DemoFailed unless the copies are each carrier's flights, once, in their order, and in one partition.
    Returns how many carriers there are."""
    missing: dict[bytes, deque[bytes]] = {}
    for carrier, flight in records:
        missing.setdefault(carrier, deque()).append(flight)
    partitions: dict[bytes, int] = {}
    for number, copy in enumerate(copies):
        flights = missing.get(copy.key)
        is_next = flights and flights.popleft() == copy.value
        if not is_next or partitions.setdefault(copy.key, copy.partition) != copy.partition:
            raise DemoFailed(
                f"{TOPIC} partition {copy.partition}, offset {copy.offset:,} is not the next flight of {copy.key!r}: "
                f"{copy.value!r}"
            )
        if number % REPORT_EVERY == 0:
            completed(number)
    if left := {carrier: len(flights) for carrier, flights in missing.items() if flights}:
        raise DemoFailed(f"{TOPIC} does not hold the last flights of these carriers: {left}")
    return len(partitions)


def aborted_count(bootstrap: str, left_open: Mapping[int, range]) -> int:
    """How many records a reader of read_uncommitted finds where the killed copier had a transaction open. Raises
    DemoFailed where there are none, or where one of read_committed finds some, too."""
    shown = sum(1 for _ in read_records(bootstrap, TOPIC, "read_uncommitted", left_open))
    committed = sum(1 for _ in read_records(bootstrap, TOPIC, "read_committed", left_open))
    if not shown or committed:
        raise DemoFailed(
            f"{shown:,} copies were left open when the copier was killed, and {committed:,} of them are committed"
        )
    return shown


def print_copied(copied: Copied, console: Console) -> None:
    """A line for what the kill found, and a line for what is there in the end."""
    console.print(
        f"The copier was killed with {copied.at_kill:,} flights committed, and {copied.aborted:,} in an open "
        "transaction: read_uncommitted alone shows those",
        f"The copy by carrier: read_committed shows {copied.flights:,} flights of {copied.carriers} carriers, each "
        "carrier's in order: 0 missed, 0 doubled",
        sep="\n",
    )
