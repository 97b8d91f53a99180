"""Topics that transactions are written to, on one broker or on a cluster, and what has to be in them afterwards."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster, Member
from benchmarks.harness.readback import LogDiffers, batches_in
from benchmarks.harness.replicated_topics import DURABLE, led_by, replicated_topic
from benchmarks.harness.servers import Server, running_kafka
from benchmarks.load.wire import LATEST, Wire, check, create_topic, delete_topic, offsets_of, repeat_until_answered
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

PARTITIONS: Final = 12
READ_COMMITTED: Final = 1
COORDINATORS: Final = {"transaction.state.log.num.partitions": "50", "offsets.topic.num.partitions": "50"}
"""Kafka's defaults, where the tests' runner has one partition each."""

Contender = Server | Cluster


@dataclass(frozen=True, slots=True)
class Place:
    """A broker, and the partitions of the topic that it leads."""

    broker: Server | Member
    partitions: Sequence[int]


@contextlib.contextmanager
def transaction_servers(bench: Bench, name: str) -> Generator[tuple[Server, Server], None, None]:
    """Odradek and Apache Kafka on empty directories, each with 50 coordinators. Raises what their starts raise."""
    bench.close()
    with (
        bench.own_odradek(f"{name}-odradek") as ours,
        running_kafka(bench.directory / f"{name}-kafka", COORDINATORS) as theirs,
    ):
        yield ours, theirs


def bootstrap_of(contender: Contender) -> str:
    return contender.address if isinstance(contender, Server) else contender.bootstrap


def pids_of(contender: Contender) -> list[int]:
    return [contender.process.pid] if isinstance(contender, Server) else contender.pids


@contextlib.contextmanager
def transaction_topic(
    contender: Contender, name: str, partitions: int = PARTITIONS
) -> Generator[list[Place], None, None]:
    """A topic, with three replicas on a cluster; who leads what of it. It is gone at the end if all went well.

    Raises KafkaError, OSError, TimeoutError, LoadFailed.
    """
    if isinstance(contender, Cluster):
        with replicated_topic(contender, name, partitions, DURABLE) as leaders:
            yield [Place(each, led_by(each.node_id, leaders)) for each in contender.members.values()]
        return
    with contender.wire() as wire:
        create_topic(wire, name, partitions)
        yield [Place(contender, range(partitions))]
    with contender.wire() as wire:
        delete_topic(wire, name)
    contender.wait_gone(name)


def require_committed(places: Sequence[Place], topic: str, records: int) -> int:
    """The end offsets of all partitions together. Raises LogDiffers unless they hold so many records, and no open
    transaction in the end; KafkaError, OSError."""
    held = ends = 0
    for place in places:
        with place.broker.wire() as wire:
            for partition, end in _stable_ends(wire, topic, place.partitions).items():
                batches = batches_in(wire, topic, partition, end)
                held += sum(header.record_count for header, _ in batches if not header.is_control)
                ends += end
    if held != records:
        raise LogDiffers(f"{topic} holds {held} records, committed were {records}")
    return ends


def _stable_ends(wire: Wire, topic: str, partitions: Sequence[int]) -> Mapping[int, int]:
    """Where partitions end, once all that was decided is told to them: a commit is answered before that."""
    asked = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in partitions]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=READ_COMMITTED,
        topics=[ListOffsetsTopic(name=topic, partitions=asked)],
    )

    def ask() -> Mapping[int, int]:
        ends = dict(zip(partitions, offsets_of(wire, topic, LATEST, partitions), strict=True))
        for told in wire.ask(request, 5).topics[0].partitions:
            check(told.error_code)
            if told.offset != ends[told.partition_index]:  # a marker may have come since the ends were asked for
                why = f"{topic}-{told.partition_index} is stable to {told.offset} of {ends[told.partition_index]}"
                raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, why)  # an error that passes
        return ends

    return repeat_until_answered(ask)
