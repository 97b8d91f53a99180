"""The demo's second story: leaders are killed in mid-stream, and what was acknowledged is there.

Three brokers with three replicas of each partition take flights from kafka-python (idempotent, acks=all,
`min.insync.replicas=2`) while a consumer reads along. Twice a broker that leads is killed by SIGKILL: one that is not
the controller, and later, when the first is back and in sync, the controller. Then all is read from the beginning, and
compared with what was acknowledged: each record at its place, none lost, none twice.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaConnectionError
from kafka.producer.future import RecordMetadata
from rich import box
from rich.console import Console
from rich.table import Table

from odradek.spark_jobs.demo.following import Following, Place
from odradek.spark_jobs.demo.load import FLUSH_TIMEOUT_S, REPORT_EVERY
from odradek.spark_jobs.demo.steps import Completed, DemoFailed, Steps
from odradek.spark_jobs.demo.three_brokers import NODE_IDS, ThreeBrokers

TOPIC = "departures"
PARTITIONS = 6
NOBODY = -1
ELECTION_TIMEOUT_S = 30.0
IN_SYNC_TIMEOUT_S = 30.0
READ_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.05
IN_FLIGHT_MAX = 20_000
"""Records that wait for their acknowledgement. More, and the stream would be over before the first kill is felt."""

Records = Sequence[tuple[bytes, bytes]]


@dataclass(slots=True)
class Loss:
    """A broker that was killed, and what followed. `led`: the partitions that it led, with their epochs."""

    node_id: int
    was_controller: bool
    acknowledged: int
    at_s: float
    led: dict[int, int]
    leaders_after: dict[int, int] = field(default_factory=dict[int, int])
    pause_s: float = 0.0
    """The longest time without an acknowledgement in one of those partitions, from the kill on."""


@dataclass(slots=True)
class Stream:
    """What was sent and acknowledged. kafka-python's sender thread writes it, the sending thread reads it."""

    sent: int = 0
    first_error: BaseException | None = None
    places: dict[int, Place] = field(default_factory=dict[int, Place])
    """Of each record, by its number."""
    times_s: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    """When each acknowledgement came, and from which partition."""

    @property
    def count(self) -> int:
        """Of those that were acknowledged."""
        return len(self.places)

    def acknowledged(self, number: int, metadata: RecordMetadata) -> None:
        self.places[number] = (metadata.partition, metadata.offset)
        self.times_s.append((time.monotonic(), metadata.partition))

    def failed(self, error: BaseException) -> None:
        self.first_error = self.first_error or error


@dataclass(frozen=True, slots=True)
class Failover:
    """How it went."""

    losses: list[Loss]
    sent: int
    read_along: int
    read_again: int


def lose_leaders(cluster: ThreeBrokers, records: Records, steps: Steps) -> Failover:
    """Runs the story; raises DemoFailed, with a text that says what is wrong, at the first difference."""
    with steps.step("start three brokers under one command"):
        cluster.start()
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        configs = {"min.insync.replicas": "2"}
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, len(NODE_IDS), topic_configs=configs)])
        stream, losses = Stream(), list[Loss]()
        with _reader(cluster) as following:
            with steps.step("stream, SIGKILL a leader, then the controller", len(records)) as completed:
                _send(cluster, admin, records, stream, losses, completed)
            with steps.step("wait for the consumer that reads along", len(records)) as completed:
                _wait_for_reader(following, stream.sent, completed)
    with steps.step("read all again and compare", len(records)) as completed, _reader(cluster) as again:
        _wait_for_reader(again, stream.sent, completed)
    for found, reader in ((following.found, "the consumer that read along"), (again.found, "reading it again")):
        compare(records, stream, found, reader)
    for loss in losses:
        loss.pause_s = longest_pause_s(stream.times_s, loss)
    return Failover(losses, stream.sent, len(following.found), len(again.found))


def _reader(cluster: ThreeBrokers) -> Following:
    return Following(cluster.bootstrap, TOPIC, range(PARTITIONS))


def _send(
    cluster: ThreeBrokers,
    admin: KafkaAdminClient,
    records: Records,
    stream: Stream,
    losses: list[Loss],
    completed: Completed,
) -> None:
    """Sends everything; at a quarter and at two thirds of it a broker is killed, which its supervisor starts again."""
    kill_at = {len(records) // 4: False, len(records) * 2 // 3: True}
    start_at = {at + len(records) // 8: at for at in kill_at}
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap, acks="all", enable_idempotence=True, linger_ms=5
    ) as producer:
        for number, (key, value) in enumerate(records):
            if number in kill_at:
                if losses:
                    _wait_until_in_sync(admin)
                losses.append(_kill_leader(cluster, admin, stream, is_controller=kill_at[number]))
            if number in start_at:
                loss = losses[-1]
                loss.leaders_after = _wait_for_others(admin, loss)
                cluster.wait_until_back(loss.node_id)
            while stream.sent - stream.count >= IN_FLIGHT_MAX and stream.first_error is None:
                time.sleep(POLL_INTERVAL_S)
            future = producer.send(TOPIC, key=key, value=value)
            future.add_callback(stream.acknowledged, number).add_errback(stream.failed)
            stream.sent += 1
            if stream.sent % REPORT_EVERY == 0:
                completed(stream.count)
                if stream.first_error is not None:
                    break
        producer.flush(timeout=FLUSH_TIMEOUT_S)
    if stream.first_error is not None or stream.count != len(records):
        raise DemoFailed(f"{stream.count:,} of {len(records):,} acknowledged; first error: {stream.first_error!r}")
    _wait_until_in_sync(admin)


def _kill_leader(cluster: ThreeBrokers, admin: KafkaAdminClient, stream: Stream, *, is_controller: bool) -> Loss:
    """Kills the controller, or the broker that leads most and is not. It leads something in either case."""
    controller = int(_asked(admin.describe_cluster)["controller_id"])
    partitions = _partitions(admin)
    counts = Counter(each["leader_id"] for each in partitions if (each["leader_id"] == controller) == is_controller)
    if not counts:
        raise DemoFailed(f"no partition is led by {'the controller' if is_controller else 'another broker'}")
    node_id = counts.most_common(1)[0][0]
    led = {each["partition_index"]: each["leader_epoch"] for each in partitions if each["leader_id"] == node_id}
    loss = Loss(node_id, is_controller, stream.count, time.monotonic(), led)
    cluster.kill_one(node_id)
    return loss


def _partitions(admin: KafkaAdminClient) -> list[dict[str, Any]]:
    [description] = _asked(lambda: admin.describe_topics([TOPIC]))
    found: list[dict[str, Any]] = description["partitions"]
    return found


def _asked(question: Callable[[], Any]) -> Any:
    """Its answer. kafka-python does not ask again where the broker that it had chosen was killed meanwhile."""
    deadline = time.monotonic() + ELECTION_TIMEOUT_S
    while True:
        try:
            return question()
        except KafkaConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_INTERVAL_S)


def _wait_for_others(admin: KafkaAdminClient, loss: Loss) -> dict[int, int]:
    """Who leads what the broker led, once all of it is led by others."""
    deadline = time.monotonic() + ELECTION_TIMEOUT_S
    while True:
        leaders = {each["partition_index"]: each["leader_id"] for each in _partitions(admin)}
        found = {partition: leaders[partition] for partition in loss.led}
        if not {loss.node_id, NOBODY} & set(found.values()):
            return found
        if time.monotonic() > deadline:
            raise DemoFailed(f"nobody else leads what broker {loss.node_id} led after {ELECTION_TIMEOUT_S:.0f} s")
        time.sleep(POLL_INTERVAL_S)


def _wait_until_in_sync(admin: KafkaAdminClient) -> None:
    """Until every partition has all its replicas in sync again."""
    deadline = time.monotonic() + IN_SYNC_TIMEOUT_S
    while any(len(each["isr_nodes"]) < len(NODE_IDS) for each in _partitions(admin)):
        if time.monotonic() > deadline:
            raise DemoFailed(f"a broker that was started again is not in sync after {IN_SYNC_TIMEOUT_S:.0f} s")
        time.sleep(POLL_INTERVAL_S)


def _wait_for_reader(reader: Following, count: int, completed: Completed) -> None:
    deadline = time.monotonic() + READ_TIMEOUT_S
    while len(reader.found) < count and not reader.is_over:
        completed(len(reader.found))
        if time.monotonic() > deadline:
            raise DemoFailed(f"a consumer has {len(reader.found):,} of {count:,} records after {READ_TIMEOUT_S:.0f} s")
        time.sleep(POLL_INTERVAL_S)
    if reader.first_error is not None:
        raise DemoFailed(f"a consumer failed: {reader.first_error!r}")


def compare(records: Records, stream: Stream, found: dict[Place, bytes], reader: str) -> None:
    lost = sum(found.get(place) != records[number][1] for number, place in stream.places.items())
    doubled = len(found) - len(set(found.values()))
    if lost or doubled or len(found) != len(records):
        raise DemoFailed(
            f"{TOPIC} holds {len(found):,} records by {reader}: of {len(records):,} that were acknowledged "
            f"{lost:,} are not where they were, and {doubled:,} are there more than once"
        )


def longest_pause_s(times_s: Sequence[tuple[float, int]], loss: Loss) -> float:
    """The longest time between two acknowledgements of a partition that it led, the later of them after the kill."""
    last: dict[int, float] = {}
    longest = 0.0
    for at_s, partition in times_s:
        if partition in loss.led:
            if at_s > loss.at_s:
                longest = max(longest, at_s - max(last.get(partition, loss.at_s), loss.at_s))
            last[partition] = at_s
    return longest


def print_failover(outcome: Failover, console: Console) -> None:
    """A line for each broker that was killed, and a line for what became of the records."""
    drawn = Table(
        title="Three brokers, three replicas, acks=all: leaders killed in mid-stream",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    drawn.add_column("killed", no_wrap=True)
    for name in ("at record", "leading", "then led by", "longest pause"):
        drawn.add_column(name, justify="right", no_wrap=True)
    for loss in outcome.losses:
        drawn.add_row(
            f"broker {loss.node_id}{', the controller' if loss.was_controller else ''}",
            f"{loss.acknowledged:,}",
            f"{len(loss.led)} of {PARTITIONS}",
            ", ".join(str(node_id) for node_id in sorted(set(loss.leaders_after.values()))),
            f"{loss.pause_s * 1000:,.0f} ms",
        )
    console.print(drawn)
    console.print(
        f"{outcome.sent:,} records sent and acknowledged, {outcome.read_along:,} read along, "
        f"{outcome.read_again:,} read again: 0 lost, 0 doubled",
        soft_wrap=True,
    )
