"""Where a group has read all but markers: what of a log's end is anything to read, and that a look is bounded."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.admin.admin import Admin
from odradek.client.commands.tails import LOOKED_AT_MAX, marker_tails, markers_since
from odradek.client.fetching.list_offsets import LATEST
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest
from tests.client.admin_handlers import serve_admin
from tests.client.broker_faults import edited, never
from tests.client.reading_handlers import fill, serve_reading
from tests.client.scripted_broker import scripted_cluster

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def data(base_offset: int, count: int = 1) -> bytes:
    records = [Record(base_offset + index, 1_000, None, b"value") for index in range(count)]
    return build_batch(records, base_offset=base_offset)


def marker(offset: int) -> bytes:
    record = Record(offset, 1_000, b"\0\0\0\1", b"\0\0\0\0\0\5")
    return build_batch([record], base_offset=offset, is_transactional=True, is_control=True, producer_id=1)


@pytest.mark.parametrize(
    ("batches", "first", "end", "since"),
    [
        ([marker(5)], 5, 6, 5),
        ([marker(5), marker(6)], 5, 7, 5),
        ([data(5), marker(6)], 5, 7, 6),
        ([data(5), marker(6), data(7)], 5, 8, 8),
        ([data(3, 2), marker(5)], 5, 6, 5),
        ([data(3, 3), marker(6)], 5, 7, 6),
        ([marker(5), marker(9)], 5, 10, 5),
        ([marker(5)], 5, 7, 7),
        ([], 5, 6, 6),
        ([marker(5)[:-1]], 5, 6, 6),
    ],
    ids=[
        "a marker", "two", "data before it", "data behind it", "data that was read", "data that was read in part",
        "offsets that compaction took away", "an end that was not sent", "nothing sent", "a batch that was cut",
    ],
)  # fmt: skip
def test_from_where_on_there_are_markers_alone(batches: Sequence[bytes], first: int, end: int, since: int) -> None:
    assert markers_since(b"".join(batches), first, end) == since


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 12))
def test_no_record_is_ever_behind_that_offset(are_markers: list[bool], position: int) -> None:
    batches = [marker(offset) if is_marker else data(offset) for offset, is_marker in enumerate(are_markers)]
    first = min(position, len(are_markers))
    since = markers_since(b"".join(batches), first, len(are_markers))
    assert first <= since <= len(are_markers)
    assert all(are_markers[since:])
    assert since == first or not are_markers[since - 1] or since == len(are_markers)


def answered(records: bytes) -> Any:
    def edit(response: Any) -> None:
        for topic in response.responses:
            for partition in topic.partitions:
                partition.records = records if partition.partition_index == 0 else data(4)

    return edited(edit)


@pytest.mark.virtual_time
async def test_leaders_are_asked_once_and_for_little() -> None:
    with scripted_cluster(brokers=2) as scripted:
        serve_admin(scripted)
        serve_reading(scripted)
        scripted.create_topic("orders", 2)
        for index in range(2):
            fill(scripted, "orders", index, *[[b"x"]] * 6)
        scripted.on(FetchRequest, answered(marker(4) + marker(5)), times=None)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment) as admin:
            await admin.list_offsets({P0: LATEST, P1: LATEST})
            tails = [(P0, 5, 6), (P0, 4, 6), (P1, 4, 6)]
            assert await marker_tails(admin, tails, read_committed=True) == {P0: 4, P1: 6}
            asked = scripted.requests(FetchRequest)
            assert len(asked) == 2
            assert {(each.max_wait_ms, each.isolation_level, each.max_bytes) for each in asked} == {(0, 1, 4096)}
            far = [(P0, 0, LOOKED_AT_MAX + 1), (P1, 6, 6)]
            assert await marker_tails(admin, far, read_committed=True) == {}
            assert scripted.count(FetchRequest) == 2


@pytest.mark.virtual_time
async def test_a_leader_that_does_not_answer_leaves_the_lag_as_it_is() -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        reading = serve_reading(scripted)
        scripted.create_topic("orders", 1)
        fill(scripted, "orders", 0, [b"x"])
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment) as admin:
            await admin.list_offsets({P0: LATEST})
            reading.errors["orders", 0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
            assert await marker_tails(admin, [(P0, 0, 1)], read_committed=False) == {}
            scripted.on(FetchRequest, never())
            assert await marker_tails(admin, [(P0, 0, 1)], read_committed=False) == {}
            assert await marker_tails(admin, [(TopicPartition("typo", 0), 0, 1)], read_committed=False) == {}
