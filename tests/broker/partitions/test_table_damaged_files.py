"""Damaged files under a broker: what it serves is right, or it says which file it cannot do without; and one partition
that cannot be read leaves the others of the same request alone.

The files of a log by themselves are in log/test_log_damaged_files.py.
"""

import asyncio
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.disk.disk import Disk
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.batch_locator import BatchLocator
from odradek.broker.log.segment import Segment
from odradek.broker.startup_errors import REFUSALS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.log.damages import damages
from tests.broker.log.logs import copied, read_all
from tests.broker.support import append
from tests.broker.support import batch as many
from tests.broker.wire import RawClient, batch, connected, create_topic, produced, running_broker

OPTIONS = {"log.segment.bytes": str(1 << 20), "log.index.interval.bytes": "1000"}
VALUE = b"v" * 3000
COUNT = 60
TOPICS = ("bad", "good")


async def with_records(disk: Disk, data_dir: str) -> None:
    async with running_broker(OPTIONS, disk, data_dir) as broker, connected(broker) as client:
        for topic in TOPICS:
            await create_topic(client, topic)
            for _ in range(COUNT):
                assert (await produced(client, topic, batch(VALUE))).error_code == ErrorCode.NONE


async def fetched(client: RawClient, offset: int) -> dict[str, tuple[int, int]]:
    """Of both topics: the error code, and the first offset of what was read (-1: nothing)."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=4000)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[wanted]) for topic in TOPICS]
    )
    answer = await client.ask(request, 12)
    assert answer.error_code == ErrorCode.NONE
    return {
        topic.topic: (one.error_code, int.from_bytes(bytes(one.records)[:8], "big") if one.records else -1)
        for topic in answer.responses
        for one in topic.partitions
    }


@pytest.mark.parametrize("position", [-1, -(2**31), 2**31 - 1, 7], ids=str)
async def test_a_wrong_position_in_an_index_costs_nobody_an_answer(
    tmp_path: Path, position: int, caplog: pytest.LogCaptureFixture
) -> None:
    """After a clean stop, when nobody looks at the index before it is used."""
    data_dir = str(tmp_path / "data")
    await with_records(FileDisk(), data_dir)
    index = tmp_path / "data" / "bad-0" / f"{0:020d}.index"
    good = index.read_bytes()
    row = struct.unpack(">ii", good[:8])
    assert row[1] > 0
    index.write_bytes(struct.pack(">ii", row[0], position) + good[8:])
    async with running_broker(OPTIONS, FileDisk(), data_dir) as broker, connected(broker) as client:
        for offset in (row[0] + 1, row[0], 40, 0):
            assert await fetched(client, offset) == dict.fromkeys(TOPICS, (ErrorCode.NONE, offset))
    warnings = [record for record in caplog.records if record.levelname == "WARNING" and str(index) in record.message]
    assert len(warnings) == 1, "it was built anew, which is said once"
    assert index.read_bytes() == good


async def test_one_partition_that_cannot_be_handled_leaves_the_others_their_answers(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is that nobody foresaw."""
    disk = MemoryDisk()
    await with_records(disk, "data")

    def spoil(kind: type, name: str, bad: Sequence[object]) -> None:
        whole = getattr(kind, name)

        def spoilt(part: object, *args: object) -> object:
            if any(part is one for one in bad):
                raise ZeroDivisionError("a number that nobody had thought of")
            return whole(part, *args)

        monkeypatch.setattr(kind, name, spoilt)

    async with running_broker(OPTIONS, disk, "data") as broker, connected(broker) as client:
        segments = broker.context.partitions.leader("bad", 0).log.segments.all
        spoil(BatchLocator, "locate", [segment.locator for segment in segments])
        for name in ("append", "should_roll"):
            spoil(Segment, name, segments)
        unknown = ErrorCode.UNKNOWN_SERVER_ERROR
        assert await fetched(client, 40) == {"bad": (unknown, -1), "good": (ErrorCode.NONE, 40)}
        by_time = ListOffsetsPartition(partition_index=0, timestamp=1)
        offsets = await client.ask(
            ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[by_time]) for topic in TOPICS]
            ),
            7,
        )
        assert [one.error_code for topic in offsets.topics for one in topic.partitions] == [unknown, ErrorCode.NONE]
        data = PartitionProduceData(index=0, records=batch(b"more"))
        sent = ProduceRequest(
            acks=-1,
            timeout_ms=5_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data]) for topic in TOPICS],
        )
        answers = await client.ask(sent, 9)
        assert [one.error_code for topic in answers.responses for one in topic.partition_responses] == [unknown, 0]
        monkeypatch.undo()  # so that the broker can stop
    assert "bad-0: a request of it failed" in caplog.text


async def test_the_log_start_of_one_partition_is_moved_though_another_one_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = MemoryDisk()
    await with_records(disk, "data")
    async with running_broker(OPTIONS, disk, "data") as broker, connected(broker) as client:
        log = broker.context.partitions.leader("bad", 0).log
        whole = type(log).advance_log_start

        def spoilt(of: object, offset: int) -> None:
            if of is log:
                raise ZeroDivisionError
            whole(of, offset)  # type: ignore[arg-type]  # a log, as all are

        monkeypatch.setattr(type(log), "advance_log_start", spoilt)
        to = DeleteRecordsPartition(partition_index=0, offset=5)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[to]) for topic in TOPICS], timeout_ms=5_000
        )
        answer = await client.ask(request, 2)
        codes = [one.error_code for topic in answer.topics for one in topic.partitions]
        assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]


NAMES = [
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "metadata.revision",
    "metadata.log",
    "boot.id",
    ".kafka_cleanshutdown",
    "meta.properties",
    "orders-0/partition.metadata",
    "orders-0/leader-epoch-checkpoint",
    "orders-0/.odradek-unsynced",
]
MAY_BE_REFUSED = {"log-start-offset-checkpoint", "metadata.revision", "metadata.log", "meta.properties"}
"""Each holds what nothing else does. A start without them would bring back what was deleted, or put aside what is not
known."""
LINE = st.lists(st.one_of(st.just("orders"), st.integers(-1, 20).map(str), st.integers().map(str)), max_size=4)
CHECKPOINT = st.lists(LINE.map(" ".join), max_size=4).map(
    lambda lines: "\n".join(["0", str(len(lines)), *lines, ""]).encode()
)


async def _stopped() -> tuple[MemoryDisk, bytes]:
    """A broker's disk after a clean stop, and what its one partition holds."""
    disk = MemoryDisk()
    async with running_broker(None, disk, "data") as broker, connected(broker) as client:
        await create_topic(client, "orders")
        partition = broker.context.partitions.leader("orders", 0)
        for number in range(12):
            append(partition, many(b"%d" % number))
        return disk, read_all(partition.log)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
@given(data=st.data())
def test_a_small_file_of_any_content(name: str, data: st.DataObject) -> None:
    """The broker serves what it served; or it refuses the start, or the one partition, with a sentence that names the
    file; or, where the file says so, it begins later (log starts), or puts the directory of another topic aside."""
    asyncio.run(_serves_or_names(name, data))


async def _serves_or_names(name: str, data: st.DataObject) -> None:
    disk, expected = await _stopped()
    path = f"data/{name}"
    good = disk.read_whole(path) if disk.exists(path) else b""
    content = data.draw(st.one_of(damages(good or b"0\n0\n", "c"), CHECKPOINT))
    broken = copied(disk, MemoryDisk())
    broken.write_whole(path, content)
    try:
        async with running_broker(None, broken, "data") as broker:
            assert broker.context.partitions.find("orders", 0)
            log = broker.context.partitions.leader("orders", 0).log
            if name == "log-start-offset-checkpoint" and log.log_start_offset:
                assert expected.endswith(read_all(log))
            elif name == "orders-0/partition.metadata" and log.log_end_offset == 0:
                assert any(each.endswith("-stray") for each in broken.list_dir("data"))
            else:
                assert read_all(log) == expected, content
    except REFUSALS as refused:
        assert name in MAY_BE_REFUSED, (name, content, str(refused))
        assert name in str(refused) or (name, str(refused)[:16]) == ("meta.properties", "data belongs to "), content
    except KafkaError as error:
        if name == "meta.properties":  # the directory has another id: it is a new one, and what it had is offline
            assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER, content
            return
        assert error.code is ErrorCode.KAFKA_STORAGE_ERROR, content
        assert name == "orders-0/partition.metadata", content
        assert name in error.message, content
