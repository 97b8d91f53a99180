"""Which transactions are late, and how often that is told: once each, and again after ten minutes."""

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.log.producers import OpenTxn
from odradek.broker.partitions.late_transactions import TOLD_AGAIN_MS, HeldUp, Late, Told, held_up, late_ms
from odradek.broker.replica.partition import Partition
from tests.broker.support import make_topic, running_broker

NOW_MS = 1_700_000_000_000


def held(partition: Partition, producer_id: int, *, epoch: int = 0, behind: int = 0) -> HeldUp:
    return HeldUp(partition, OpenTxn(producer_id, epoch, 5, NOW_MS), behind)


def test_late_is_longer_than_the_longest_timeout_and_five_minutes() -> None:
    assert late_ms(BrokerConfig({"transaction.max.timeout.ms": "1000"})) == 301_000


async def test_a_transaction_is_told_of_once_and_again_after_ten_minutes() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        late = held(context.partitions.find("orders", 0), 7)
        told = Told()
        assert told.due([late], NOW_MS) == [Late(late, 1)]
        assert told.due([late], NOW_MS + 1) == []
        assert told.due([late], NOW_MS + TOLD_AGAIN_MS - 1) == []
        assert told.due([late], NOW_MS + TOLD_AGAIN_MS) == [Late(late, 1)]
        assert told.due([late], NOW_MS + TOLD_AGAIN_MS + 1) == []


async def test_it_is_told_of_where_its_readers_are_furthest_behind() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", 3)
        late = [
            held(context.partitions.find("orders", index), 7, behind=behind) for index, behind in enumerate((3, 9, 4))
        ]
        assert Told().due(late, NOW_MS) == [Late(late[1], 3)]


async def test_each_transaction_has_a_line_of_its_own() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        partition = context.partitions.find("orders", 0)
        first, other, next_epoch = held(partition, 7), held(partition, 8), held(partition, 7, epoch=1)
        told = Told()
        assert told.due([first], NOW_MS) == [Late(first, 1)]
        assert told.due([first, other, next_epoch], NOW_MS + 1) == [Late(other, 1), Late(next_epoch, 1)]


async def test_what_has_ended_is_forgotten() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        late = held(context.partitions.find("orders", 0), 7)
        told = Told()
        assert told.due([late], NOW_MS)
        assert told.due([], NOW_MS + 1) == []
        assert told.due([late], NOW_MS + 2) == [Late(late, 1)]


async def test_where_no_transaction_is_open_nobody_is_held_up() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        assert held_up(context.partitions.find("orders", 0)) is None


async def test_a_clock_that_went_back_makes_no_negative_age() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        assert held(context.partitions.find("orders", 0), 7).age_ms(NOW_MS - 1) == 0
