"""DescribeLogDirs (key 35): the data directories, how full their disks are, and how large each partition is (KIP-113).

One that has failed, or whose disk does not answer, comes with KAFKA_STORAGE_ERROR and without partitions (KIP-112).
Null topics ask for all partitions. One that is not on this broker is left out, as Kafka does. Partitions are never
moved between directories here, so `offset_lag` is what the log end lacks to the high watermark, which is nothing.

Versions: 2 flexible. 3 an error for the whole answer. 4 total and usable bytes (KIP-827). 5 whether new partitions are
kept away from a directory (KIP-1066), which is never so here.
"""

from collections.abc import Iterable

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.directories.data_directory import DataDirectory
from odradek.broker.handling.context import Call, Context
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


async def handle(context: Context, call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    context.require(call, Operation.DESCRIBE, CLUSTER)
    places: dict[DataDirectory, list[Partition]] = {directory: [] for directory in context.partitions.directories}
    for partition in _asked(context, request):
        places[context.partitions.place(partition)].append(partition)
    return DescribeLogDirsResponse(
        results=[_result(context, call, directory, partitions) for directory, partitions in places.items()]
    )


def _result(
    context: Context, call: Call, directory: DataDirectory, partitions: Iterable[Partition]
) -> DescribeLogDirsResult:
    path, result = directory.path, DescribeLogDirsResult(log_dir=directory.path, topics=_topics(partitions))
    try:
        if directory.failure is not None:
            raise OSError(directory.failure)
        result.total_bytes = context.disk.total_bytes(path)
        result.usable_bytes = context.disk.free_bytes(path)
    except OSError as error:
        failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} cannot be asked: {error}")
        return DescribeLogDirsResult(log_dir=path, topics=[], error_code=call.failed(failure))
    return result


def _asked(context: Context, request: DescribeLogDirsRequest) -> Iterable[Partition]:
    if request.topics is None:
        return sorted(context.partitions, key=lambda partition: (partition.topic, partition.index))
    keys = dict.fromkeys((topic.topic, index) for topic in request.topics for index in topic.partitions)
    here: list[Partition] = []
    for topic, index in keys:
        try:
            here.append(context.partitions.find(topic, index))
        except KafkaError:
            continue  # not on this broker: nothing to say about it
    return here


def _topics(partitions: Iterable[Partition]) -> list[DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in partitions:
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = DescribeLogDirsTopic(name=partition.topic, partitions=[])
        lag = max(0, partition.high_watermark.value - partition.log.log_end_offset)
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=partition.index,
                partition_size=partition.log.size_bytes,
                offset_lag=lag,
                is_future_key=False,
            )
        )
    return list(topics.values())


def fail(request: DescribeLogDirsRequest, code: ErrorCode) -> DescribeLogDirsResponse:
    del request
    return DescribeLogDirsResponse(error_code=code, results=[])
