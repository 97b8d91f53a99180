"""DescribeLogDirs (key 35): the data directory, how full its disk is, and how large each partition in it (KIP-113).

Null topics ask for all partitions. One that is not on this broker is left out, as Kafka does. Partitions are never
moved between directories here, so `offset_lag` is what the log end lacks to the high watermark, which is nothing.

Versions: 2 flexible. 3 an error for the whole answer. 4 total and usable bytes (KIP-827).
"""

from collections.abc import Iterable

from broker.context import Call, Context
from broker.replication.partition import Partition
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


async def handle(context: Context, call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    result = DescribeLogDirsResult(log_dir=context.data_dir, topics=_topics(_asked(context, request)))
    try:
        result.total_bytes = context.disk.total_bytes(context.data_dir)
        result.usable_bytes = context.disk.free_bytes(context.data_dir)
    except OSError as error:
        failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{context.data_dir} cannot be asked: {error}")
        result = DescribeLogDirsResult(log_dir=context.data_dir, topics=[], error_code=call.failed(failure))
    return DescribeLogDirsResponse(results=[result])


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
