"""The two contenders as groups are measured on them: no delay before a rebalance, and Kafka's 50 offsets partitions.

Both are asked through their own requests. A coordinator that loads, or is not known yet, is asked again.
"""

import contextlib
from collections.abc import Generator, Iterable, Mapping

from benchmarks.harness.bench import Bench
from benchmarks.harness.coordinators import PARTITIONS, KeyType, coordinator_of
from benchmarks.harness.servers import Server, running_kafka
from benchmarks.load.wire import Wire, check, repeat_until_answered
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from processes.odradek_broker import settings_words

AT_ONCE = {"group.initial.rebalance.delay.ms": "0", "group.consumer.assignment.interval.ms": "0"}
KAFKA_DEFAULTS = {"offsets.topic.num.partitions": str(PARTITIONS)}
"""Where the tests' runner has one partition."""
COMMIT_VERSION = 9
FETCH_VERSION = 9
MOVING = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


@contextlib.contextmanager
def group_servers(bench: Bench, name: str) -> Generator[tuple[Server, Server], None, None]:
    """Odradek and Apache Kafka on empty directories, with `AT_ONCE`. Raises what their starts raise."""
    bench.close()
    with (
        bench.own_odradek(f"{name}-odradek", *settings_words(AT_ONCE)) as ours,
        running_kafka(bench.directory / f"{name}-kafka", {**KAFKA_DEFAULTS, **AT_ONCE}) as theirs,
    ):
        yield ours, theirs


def commit_request(group: str, topic: str, offsets: Mapping[int, int]) -> OffsetCommitRequest:
    """Of no member of a group: `offsets` by partition."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        for index, offset in offsets.items()
    ]
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)])


def commit(wire: Wire, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """One attempt. Raises KafkaError for the first partition that is refused, OSError."""
    answered = wire.ask(commit_request(group, topic, offsets), COMMIT_VERSION)
    for partition in answered.topics[0].partitions:
        check(partition.error_code)


def commit_when_led(wire: Wire, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """The same, asked again while the group's coordinator is not ready. Raises KafkaError, OSError."""

    def ask() -> None:
        try:
            commit(wire, group, topic, offsets)
        except KafkaError as error:
            if error.code in MOVING:
                coordinator_of(wire, group, KeyType.GROUP)  # has the topic of offsets created
            raise

    repeat_until_answered(ask)


def committed(wire: Wire, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """The group's offsets by partition; -1 where there is none. Raises KafkaError, OSError."""
    topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])
    (answered,) = wire.ask(request, FETCH_VERSION).groups
    check(answered.error_code)
    (told,) = answered.topics
    for partition in told.partitions:
        check(partition.error_code)
    return {partition.partition_index: partition.committed_offset for partition in told.partitions}
