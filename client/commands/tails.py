"""Whether what a group has still to read of a partition is anything at all.

The end of a transaction is a marker, a record of the broker's own that takes an offset and that no consumer gets. A
group that has read everything may have committed the offset before such markers, and would lag behind for ever. So
where the lag is small, the rest of the partition is looked at: with one Fetch to each leader, which asks for a few
kilobytes of each such partition and never waits. A leader that does not answer leaves the lag as it was.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.topics import TopicDescription
from odradek.client.errors.base import ClientError
from odradek.client.fetching.fetch_settings import FetchSettings
from odradek.client.fetching.request import WantedPartition, answers, fetch_request, highest_version
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.codec.schema import Buffer
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.fetch import FetchRequest
from odradek.runtime.tasks import run_together

__all__ = ["LOOKED_AT_MAX", "marker_tails", "markers_since"]

LOOKED_AT_MAX: Final = 16
"""A lag of more is not only markers, or a look would have to be longer."""
LOOK_BYTES: Final = 4096
"""A marker takes 78 bytes. A batch of records that is larger is not sent: then there is something to read."""
LOOK_TIMEOUT_MS: Final = 1000.0


def markers_since(records: Buffer, first: int, end: int) -> int:
    """The offset from which on there is nothing to read up to `end`; `end`, where there is or that is not known.

    `records`: those from `first` on, as a leader has sent them. A batch that compaction has emptied is nothing to read.
    """
    since, expected = first, first
    try:
        for _, header in iterate_batches(records):
            if header.last_offset < first:
                continue
            expected = header.last_offset + 1
            if not header.is_control and header.record_count:
                since = expected
    except KafkaError:
        return end
    return since if expected >= end else end


async def marker_tails(
    admin: Admin, tails: Iterable[tuple[TopicPartition, int, int]], *, read_committed: bool
) -> dict[TopicPartition, int]:
    """By partition, the offset from which on there are markers alone. `tails`: from where up to which end to look."""
    wanted: dict[TopicPartition, tuple[int, int]] = {}
    for partition, first, end in tails:
        if 0 < end - first <= LOOKED_AT_MAX:
            known = wanted.get(partition)
            wanted[partition] = (first if known is None else min(known[0], first), end)
    if not wanted:
        return {}
    try:
        topics = await admin.describe_topics({partition.topic for partition in wanted})
    except ItemsFailed as failed:
        topics = failed.results
    except ClientError:
        return {}
    by_leader: dict[int, dict[TopicPartition, tuple[int, int]]] = {}
    for partition, leader, epoch in _leaders(topics.values()):
        if partition in wanted and leader >= 0:
            by_leader.setdefault(leader, {})[partition] = (wanted[partition][0], epoch)
    settings = FetchSettings(
        fetch_max_wait_ms=0,
        max_partition_fetch_bytes=LOOK_BYTES,
        isolation_level="read_committed" if read_committed else "read_uncommitted",
    )
    looks = [_look(admin, leader, some, settings) for leader, some in by_leader.items()]
    found: dict[TopicPartition, int] = {}
    for records in await run_together(looks, "look at tails"):
        found |= {each: markers_since(data, *wanted[each]) for each, data in records.items()}
    return found


async def _look(
    admin: Admin, leader: int, wanted: Mapping[TopicPartition, tuple[int, int]], settings: FetchSettings
) -> dict[TopicPartition, Buffer]:
    """What a leader has from these offsets on; nothing, where it cannot be asked."""
    connection = admin.cluster.connection(leader)  # the one over which it told the ends
    if connection is None:
        return {}
    asked = {partition: WantedPartition(*position) for partition, position in wanted.items()}
    request = fetch_request(asked, {}, settings, LOOK_BYTES * len(wanted))
    try:
        version = connection.version_of(FetchRequest, highest_version(request))
        response = await connection.ask(request, version=version, timeout_ms=LOOK_TIMEOUT_MS)
    except ClientError:
        return {}
    return {
        partition: data.records or b""
        for partition, data in answers(request, response).items()
        if partition in wanted and not data.error_code
    }


def _leaders(topics: Iterable[TopicDescription]) -> Iterable[tuple[TopicPartition, int, int]]:
    for topic in topics:
        for each in topic.partitions:
            yield TopicPartition(topic.name, each.partition), each.leader, each.leader_epoch
