"""Produce: batches are appended or refused one by one, and an acknowledgement says no more than is true."""

import errno
import struct
from collections.abc import Sequence

import pytest

from odradek.broker.cluster.keys import BrokerState
from odradek.broker.cluster.topics import delete_topic
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.handling.context import CloseConnection
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.crc32c import crc32c
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.codec.schema import ZERO_UUID, Buffer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    LeaderIdAndEpoch,
    ProduceRequest,
)
from tests.broker.api.producing import ACKS_ALL, answers, end_of, idempotent, produced, request
from tests.broker.support import HERE, ask, ask_if_answered, batch, id_of, make_topic, running_broker


def sealed(data: bytes, layout: str, position: int, value: int) -> bytes:
    """The batch with another value in its header, and a checksum that fits."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return bytes(changed)


def compressed(codec: Codec) -> bytes:
    return build_batch([Record(0, 1000, None, b"value" * 20, ())], codec=codec)


# -- appending ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("acks", [1, ACKS_ALL])
async def test_the_base_offset_is_answered(version: int, acks: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (first,) = await produced(context, (0, batch(b"a", b"b")), version=version, acks=acks)
        (second,) = await produced(context, (0, batch(b"c")), version=version, acks=acks)
        assert end_of(context) == 3
    assert (first.error_code, first.base_offset, second.base_offset) == (ErrorCode.NONE, 0, 2)
    assert second.log_append_time_ms == -1
    assert second.log_start_offset == (0 if version >= 5 else -1)
    assert (second.record_errors, second.error_message, second.current_leader) == ([], None, None)


async def test_the_bytes_in_the_log_are_the_clients_but_for_offset_and_epoch() -> None:
    data = batch(b"a", b"b")
    async with running_broker() as context:
        await make_topic(context, "orders")
        context.partitions.leader("orders", 0).become_leader(5, Replicas(0, (0,), (0,)))
        await produced(context, (0, batch(b"before")))
        await produced(context, (0, data))
        stored = bytes(context.partitions.leader("orders", 0).reader.fetch(1, 1 << 20, at_least_one_batch=True).records)
    assert stored[:8] == struct.pack(">q", 1)
    assert stored[12:16] == struct.pack(">i", 5)
    assert stored[8:12] + stored[16:] == data[8:12] + data[16:]


async def test_the_real_log_start_is_answered() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        await produced(context, (0, batch(b"a", b"b")))
        await context.partitions.delete_records(context.partitions.leader("orders", 0), 1)
        (answer,) = await produced(context, (0, batch(b"c")))
    assert answer.log_start_offset == 1


async def test_partitions_are_independent() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", 2)
        told = await produced(context, (1, batch(b"a")), (9, batch(b"b")), (0, b"nonsense"), (0, batch(b"c")))
        assert (end_of(context, 0), end_of(context, 1)) == (1, 1)
    assert [answer.error_code for answer in told] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_RECORD,
        ErrorCode.NONE,
    ]
    assert [answer.base_offset for answer in told] == [0, -1, -1, 0]


@pytest.mark.parametrize("codec", list(Codec))
async def test_every_codec_is_stored_as_it_came(codec: Codec) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (answer,) = await produced(context, (0, compressed(codec)))
    assert answer.error_code == ErrorCode.NONE


# -- acks 0 ---------------------------------------------------------------------------------------------------------


async def test_with_acks_0_there_is_no_answer() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        assert await ask_if_answered(context, request((0, batch(b"a")), acks=0), 11) is None
        assert end_of(context) == 1


async def test_with_acks_0_an_error_closes_the_connection_and_the_good_batches_stay() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        with pytest.raises(CloseConnection, match="orders-9: UNKNOWN_TOPIC_OR_PARTITION"):
            await ask_if_answered(context, request((0, batch(b"a")), (9, batch(b"b")), acks=0), 11)
        assert end_of(context) == 1


@pytest.mark.parametrize("acks", [2, -2])
async def test_other_acks_are_refused_and_nothing_is_appended(acks: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", 2)
        told = await produced(context, (0, batch(b"a")), (1, batch(b"b")), acks=acks)
        assert end_of(context) == 0
    assert [answer.error_code for answer in told] == [ErrorCode.INVALID_REQUIRED_ACKS] * 2


# -- bad batches ----------------------------------------------------------------------------------------------------

GOOD = batch(b"a", b"b", b"c")
BAD: list[tuple[str, bytes | None, ErrorCode]] = [
    ("no batch", None, ErrorCode.INVALID_RECORD),
    ("empty", b"", ErrorCode.INVALID_RECORD),
    ("two batches", GOOD + GOOD, ErrorCode.INVALID_RECORD),
    ("cut short", GOOD[:-1], ErrorCode.INVALID_RECORD),
    ("a flipped bit", GOOD[:-1] + bytes([GOOD[-1] ^ 1]), ErrorCode.CORRUPT_MESSAGE),
    ("a wrong checksum", GOOD[:17] + b"\0\0\0\0" + GOOD[21:], ErrorCode.CORRUPT_MESSAGE),
    ("magic 1", GOOD[:16] + b"\1" + GOOD[17:], ErrorCode.INVALID_RECORD),
    ("a length below the header", GOOD[:8] + b"\0\0\0\1" + GOOD[12:], ErrorCode.CORRUPT_MESSAGE),
    ("a base offset", b"\0\0\0\0\0\0\0\1" + GOOD[8:], ErrorCode.INVALID_RECORD),
    ("no records", sealed(GOOD, ">i", 57, 0), ErrorCode.INVALID_RECORD),
    ("a count below the offsets", sealed(GOOD, ">i", 57, 2), ErrorCode.INVALID_RECORD),
    ("a last offset below the count", sealed(GOOD, ">i", 23, 1), ErrorCode.INVALID_RECORD),
    ("a count that cannot fit", sealed(sealed(GOOD, ">i", 57, 10_000), ">i", 23, 9_999), ErrorCode.INVALID_RECORD),
    ("the control bit", sealed(GOOD, ">h", 21, 0x20), ErrorCode.INVALID_RECORD),
    ("an unknown codec", sealed(GOOD, ">h", 21, 7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ("a producer without a sequence", sealed(GOOD, ">q", 43, 5), ErrorCode.INVALID_RECORD),
]


@pytest.mark.parametrize(("data", "code"), [each[1:] for each in BAD], ids=[each[0] for each in BAD])
@pytest.mark.parametrize("version", [3, 11])
async def test_a_bad_batch_is_refused_nothing_is_appended_and_others_are_not_concerned(
    version: int, data: bytes | None, code: ErrorCode
) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", 2)
        bad, good = await produced(context, (0, data), (1, GOOD), version=version)
        assert (end_of(context, 0), end_of(context, 1)) == (0, 3)
    assert (bad.error_code, bad.base_offset) == (code, -1)
    assert bool(bad.error_message) == (version >= 8)
    assert (good.error_code, good.base_offset) == (ErrorCode.NONE, 0)


async def test_full_validation_walks_the_records() -> None:
    poisonous = sealed(GOOD[:-1] + b"\x7f", ">i", 57, 3)
    for settings, code in (
        ({"record.validation": "header"}, ErrorCode.NONE),
        ({"record.validation": "full"}, ErrorCode.INVALID_RECORD),
    ):
        async with running_broker(settings) as context:
            await make_topic(context, "orders")
            (answer,) = await produced(context, (0, poisonous))
        assert answer.error_code == code


async def test_a_batch_over_max_message_bytes() -> None:
    data = batch(b"x" * 1000)
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"max.message.bytes": str(len(data) - 1)})
        await make_topic(context, "others", configs={"max.message.bytes": str(len(data))})
        (refused,) = await produced(context, (0, data))
        (taken,) = await produced(context, (0, data), topic="others")
        assert end_of(context) == 0
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "max.message.bytes" in (refused.error_message or "")
    assert taken.error_code == ErrorCode.NONE


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
async def test_zstd_needs_version_7(version: int, code: ErrorCode) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (answer,) = await produced(context, (0, compressed(Codec.ZSTD)), version=version)
    assert answer.error_code == code


LONGEST = pytest.param("x" * 32_767, id="longest")


@pytest.mark.parametrize("topic", ["nowhere", "", "a b", LONGEST])
async def test_an_unknown_topic_is_told_however_it_is_called(topic: str) -> None:
    async with running_broker() as context:
        (answer,) = await produced(context, (0, GOOD), topic=topic)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize("topic_id", [ZERO_UUID, b"?" * 16])
async def test_an_id_that_no_topic_has_is_told_of_each_partition(topic_id: bytes) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        sent = request((0, GOOD), (7, GOOD), topic_id=topic_id)
        sent.topic_data += request((0, GOOD), topic_id=id_of(context, "orders")).topic_data
        unknown, known = (await ask(context, sent, 13)).responses
        assert unknown.topic_id == topic_id
        assert [(each.index, each.error_code, each.base_offset) for each in unknown.partition_responses] == [
            (0, ErrorCode.UNKNOWN_TOPIC_ID, -1),
            (7, ErrorCode.UNKNOWN_TOPIC_ID, -1),
        ]
        assert known.partition_responses[0].error_code == ErrorCode.NONE
        assert end_of(context) == 3


async def test_the_id_of_a_topic_made_anew_is_not_that_of_the_one_before() -> None:
    """By its name a producer would write to it."""
    async with running_broker() as context:
        old_id = await make_topic(context, "orders")
        old = context.metadata.image.topics["orders"]
        await context.metadata.applied(await delete_topic(context.metadata.store, old))
        await make_topic(context, "orders")
        [topic] = (await ask(context, request((0, GOOD), topic_id=old_id), 13)).responses
        assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert end_of(context) == 0


async def test_with_acks_0_an_unknown_id_closes_the_connection_and_is_named() -> None:
    async with running_broker() as context:
        with pytest.raises(CloseConnection, match="Pz8_Pz8_Pz8_Pz8_Pz8_Pw-0: UNKNOWN_TOPIC_ID"):
            await ask_if_answered(context, request((0, GOOD), topic_id=b"?" * 16, acks=0), 13)


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("index", [1, -1, 2**31 - 1])
async def test_a_partition_out_of_range(index: int, version: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (answer,) = await produced(context, (index, GOOD), version=version)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- idempotence ----------------------------------------------------------------------------------------------------


async def test_a_batch_sent_again_is_answered_as_the_first_time_and_not_appended() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        firsts = [(await produced(context, (0, idempotent(at))))[0] for at in range(5)]
        again = [(await produced(context, (0, idempotent(at))))[0] for at in range(5)]
        assert end_of(context) == 5
    assert [answer.error_code for answer in (*firsts, *again)] == [ErrorCode.NONE] * 10
    assert [answer.base_offset for answer in again] == [answer.base_offset for answer in firsts] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("before", "then", "code"),
    [
        ([(0, 0)], (0, 2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(0, at) for at in range(6)], (0, 0), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(1, 0)], (0, 1), ErrorCode.INVALID_PRODUCER_EPOCH),
        ([(0, 0)], (1, 1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ([(0, 0)], (1, 0), ErrorCode.NONE),
        ([], (3, 1234), ErrorCode.NONE),
        ([(0, 2**31 - 1)], (0, 0), ErrorCode.NONE),
    ],
)
async def test_epochs_and_sequences(before: Sequence[tuple[int, int]], then: tuple[int, int], code: ErrorCode) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        for epoch, sequence in before:
            (answer,) = await produced(context, (0, idempotent(sequence, epoch=epoch)))
            assert answer.error_code == ErrorCode.NONE
        (answer,) = await produced(context, (0, idempotent(then[1], epoch=then[0])))
        assert end_of(context) == len(before) + (code == ErrorCode.NONE)
    assert answer.error_code == code


# -- who leads ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [(1, 0), (1, 2)], ids=["a follower", "a stranger"])
@pytest.mark.parametrize("version", [9, 10, 13])
async def test_since_version_10_the_leader_is_named(version: int, replicas: tuple[int, ...]) -> None:
    other = BrokerState(1, {"PLAINTEXT": ("127.0.0.1", 9093)})
    async with running_broker(brokers=(HERE, other)) as context:
        await make_topic(context, "orders", 2, replicas=replicas, leader=1)
        sent = request((0, batch(b"a")), (1, batch(b"b")), topic_id=id_of(context, "orders"))
        response = await ask(context, sent, version)
        assert [partition.log.log_end_offset for partition in context.partitions] == [0] * (2 if 0 in replicas else 0)
    told = answers(response)
    assert [answer.error_code for answer in told] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    if version < 10:
        assert response.node_endpoints == []
        return
    assert [answer.current_leader for answer in told] == [LeaderIdAndEpoch(leader_id=1, leader_epoch=0)] * 2
    assert [(node.node_id, node.host, node.port) for node in response.node_endpoints] == [(1, "127.0.0.1", 9093)]


async def test_a_leader_that_this_listener_cannot_reach_does_not_spoil_the_other_answers() -> None:
    other = BrokerState(1, {"INTERNAL": ("127.0.0.1", 9093)})
    async with running_broker(brokers=(HERE, other)) as context:
        await make_topic(context, "elsewhere", replicas=(1, 0), leader=1)
        await make_topic(context, "orders")
        both = ProduceRequest(
            acks=ACKS_ALL,
            timeout_ms=1000,
            topic_data=[
                *request((0, batch(b"a"))).topic_data,
                *request((0, batch(b"a")), topic="elsewhere").topic_data,
            ],
        )
        response = await ask(context, both, 10)
    codes = [topic.partition_responses[0].error_code for topic in response.responses]
    assert codes == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert response.node_endpoints == []


# -- the disk -------------------------------------------------------------------------------------------------------


async def test_a_full_disk_is_told_and_when_there_is_room_again_appending_goes_on() -> None:
    class Filling(MemoryDisk):
        is_full = False

        def write(self, content: Content, data: Buffer) -> None:
            if self.is_full:
                content += memoryview(data)[:10]
                raise OSError(errno.ENOSPC, "no room")
            super().write(content, data)

    disk = Filling()
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders")
        (before,) = await produced(context, (0, batch(b"a")))
        disk.is_full = True
        (full,) = await produced(context, (0, batch(b"b")))
        disk.is_full = False
        (after,) = await produced(context, (0, batch(b"c")))
    assert (before.error_code, full.error_code, after.error_code) == (0, ErrorCode.KAFKA_STORAGE_ERROR, 0)
    assert (before.base_offset, full.base_offset, after.base_offset) == (0, -1, 1)
