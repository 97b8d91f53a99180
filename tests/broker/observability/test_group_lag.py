"""The lag of groups follows commits and appends, and is told of in a bounded number of series."""

import pytest

from odradek.broker.handling.context import Context
from odradek.broker.observability import group_lag
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.group_lag import group_lag_samples
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.support import append, ask, batch, make_topic, running_broker

SETTINGS = {"offsets.topic.num.partitions": "2"}


async def commit(context: Context, group_id: str, offset: int, topic: str = "orders") -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=None)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    await ask(context, FindCoordinatorRequest(coordinator_keys=[group_id]), 4)
    answer = await ask(context, OffsetCommitRequest(group_id=group_id, topics=topics), 8)
    assert answer.topics[0].partitions[0].error_code == 0


async def make_orders(context: Context) -> None:
    await make_topic(context, "orders")
    append(context.partitions.find("orders", 0), batch(b"a", b"b", b"c"))


def told(context: Context, series_max: int) -> tuple[dict[str, float], float | None]:
    """The lag by group, and how many offsets were left out."""
    lags: dict[str, float] = {}
    left_out: float | None = None
    for row, labels, value in group_lag_samples(context.groups, context.partitions, series_max):
        assert isinstance(value, int)
        if row is rows.GROUP_LAG:
            assert labels[1:] == ("orders", "0")
            lags[labels[0]] = value
        else:
            left_out = value
    return lags, left_out


async def test_lag_is_the_high_watermark_less_the_committed_offset_and_never_negative() -> None:
    async with running_broker(SETTINGS) as context:
        await make_orders(context)
        await commit(context, "behind", 1)
        await commit(context, "ahead", 5)
        assert told(context, 10) == ({"behind": 2, "ahead": 0}, 0)


async def test_deleted_records_are_no_lag() -> None:
    async with running_broker(SETTINGS) as context:
        await make_orders(context)
        await commit(context, "behind", 0)
        context.partitions.find("orders", 0).log.advance_log_start(2)
        assert told(context, 10) == ({"behind": 1}, 0)


async def test_an_offset_of_an_earlier_topic_of_the_same_name_is_not_told_of() -> None:
    async with running_broker(SETTINGS) as context:
        await make_orders(context)
        await commit(context, "behind", 1)
        offsets = context.groups.of("behind").machine.offsets.offsets
        ((position, committed),) = offsets.of("behind").items()
        offsets.commit("behind", position, committed._replace(topic_id=bytes(range(16))))
        assert told(context, 10) == ({}, 0)


async def test_nothing_is_told_unless_asked_for() -> None:
    async with running_broker(SETTINGS) as context:
        await make_orders(context)
        await commit(context, "behind", 1)
        assert context.config.metrics_group_lag_max_series == 0
        assert told(context, 0) == ({}, None)


async def test_the_same_series_are_told_at_each_scrape_and_the_rest_is_counted() -> None:
    async with running_broker({"offsets.topic.num.partitions": "1"}) as context:
        await make_orders(context)
        for group_id in ("c", "a", "b"):
            await commit(context, group_id, 1)
        assert told(context, 2) == told(context, 2) == ({"c": 2, "a": 2}, 1)


async def test_only_so_many_offsets_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_lag, "LOOKED_AT_MAX", 1)
    async with running_broker({"offsets.topic.num.partitions": "1"}) as context:
        await make_orders(context)
        for group_id in ("a", "b", "c"):
            await commit(context, group_id, 1)
        assert told(context, 10) == ({"a": 2}, 2)
