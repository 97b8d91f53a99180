"""A coordinators' topic gets more replicas when there are more brokers, and then its min ISR, from the controller."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from odradek.broker.cluster.keys import CONTROLLER_KEY, encode_controller, partition_key
from odradek.broker.cluster.store import Txn
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.cluster.topics import write_topic_configs
from odradek.broker.handling import coordinator_topics_upkeep
from odradek.broker.handling.context import Context
from odradek.broker.handling.coordinator_topics import OF_GROUPS, OF_TRANSACTIONS, ensure_coordinator_topic
from odradek.broker.handling.coordinator_topics_upkeep import CoordinatorTopicsUpkeep
from odradek.broker.handling.internal_topics import add_replicas
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.api.controlling import controller
from tests.broker.handling.test_internal_topics import register
from tests.broker.support import HERE

OFFSETS, TRANSACTIONS, MIN_ISR = "__consumer_offsets", "__transaction_state", "min.insync.replicas"
PARTITIONS = 50


@asynccontextmanager
async def kept_up() -> AsyncGenerator[Context]:
    """One broker that is the controller, has created the topic with its one replica, and looks after it."""
    async with controller(nodes=(0,), brokers=[HERE]) as context:
        await ensure_coordinator_topic(context, OF_GROUPS)
        upkeep = CoordinatorTopicsUpkeep(context)
        context.metadata.subscribe(upkeep.follow)
        context.tasks.start(upkeep.run(), "look after the offsets topic")
        yield context


def topic(context: Context) -> TopicImage:
    return context.metadata.image.topics[OFFSETS]


def configs(context: Context) -> Mapping[str, str]:
    return topic(context).configs


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for happens by itself, and tells nobody
            await asyncio.sleep(0.001)


async def quiet(context: Context) -> None:
    """All that the last news could set off has happened."""
    revision = None
    while revision != context.metadata.image.revision:
        revision = context.metadata.image.revision
        await asyncio.sleep(0.02)  # upkeep works in tasks that nobody can be asked of: so long, and nothing was changed


async def put(context: Context, values: Mapping[str, bytes]) -> None:
    await asyncio.wait_for(context.metadata.applied(await context.metadata.store.commit(Txn(put=values))), 5)


async def catch_up(context: Context, *isr: int) -> None:
    """The replicas that were added are there; these are in sync."""
    after = {
        partition_key(OFFSETS, index): replace(
            state, isr=isr, adding=(), partition_epoch=state.partition_epoch + 1
        ).encode()
        for index, state in enumerate(topic(context).partitions)
    }
    await put(context, after)


def replica_counts(context: Context) -> set[int]:
    return {len(state.replicas) for state in topic(context).partitions}


async def test_brokers_that_come_get_replicas_and_then_the_min_isr_rises(caplog: pytest.LogCaptureFixture) -> None:
    async with kept_up() as context:
        assert (replica_counts(context), MIN_ISR in configs(context)) == ({1}, False)
        with caplog.at_level(logging.INFO):
            await register(context, 1, 2)
            await until(lambda: replica_counts(context) == {3})
            await until(lambda: f"{PARTITIONS} partitions get more replicas" in caplog.text)
        assert {(state.adding, state.leader) for state in topic(context).partitions} <= {((1, 2), 0), ((2, 1), 0)}
        await quiet(context)
        assert MIN_ISR not in configs(context), "with one replica in sync nothing could be committed"
        await catch_up(context, 0, 1)
        await quiet(context)
        assert MIN_ISR not in configs(context), "a replica is missing in the ISR"
        before = configs(context)
        with caplog.at_level(logging.INFO):
            await catch_up(context, 0, 1, 2)
            await until(lambda: f"{OFFSETS}: {MIN_ISR} is 2 from now on" in caplog.text)
        assert configs(context) == {**before, MIN_ISR: "2"}


async def test_two_brokers_get_two_replicas_and_no_min_isr() -> None:
    async with kept_up() as context:
        await register(context, 1)
        await until(lambda: replica_counts(context) == {2})
        await catch_up(context, 0, 1)
        await quiet(context)
        assert MIN_ISR not in configs(context)


async def test_a_min_isr_that_somebody_has_set_stays() -> None:
    async with kept_up() as context:
        wanted = {**configs(context), MIN_ISR: "1"}
        revision = await write_topic_configs(context.metadata.store, topic(context), wanted)
        await asyncio.wait_for(context.metadata.applied(revision), 5)
        await register(context, 1, 2)
        await until(lambda: replica_counts(context) == {3})
        await catch_up(context, 0, 1, 2)
        await quiet(context)
        assert configs(context) == wanted


async def test_only_the_controller_looks_after_it() -> None:
    async with kept_up() as context:
        await put(context, {CONTROLLER_KEY: encode_controller(1)})
        await register(context, 1, 2)
        await quiet(context)
        assert replica_counts(context) == {1}


async def test_without_the_topic_there_is_nothing_to_do() -> None:
    async with controller(nodes=(0,), brokers=[HERE]) as context:
        upkeep = CoordinatorTopicsUpkeep(context)
        context.metadata.subscribe(upkeep.follow)
        task = context.tasks.start(upkeep.run(), "look after the offsets topic")
        await register(context, 1, 2)
        await quiet(context)
        assert not task.done()
        assert OFFSETS not in context.metadata.image.topics


async def test_what_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    failures = iter([KafkaError(ErrorCode.REQUEST_TIMED_OUT, "late")])

    async def fail_once(context: Context, *args: object) -> int:
        if len(context.metadata.image.registered) > 1 and (error := next(failures, None)) is not None:
            raise error
        return await add_replicas(context, *args)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(coordinator_topics_upkeep, "add_replicas", fail_once)
    monkeypatch.setattr(coordinator_topics_upkeep, "RETRY_MS", 10.0)
    async with kept_up() as context:
        with caplog.at_level(logging.WARNING):
            await register(context, 1)
            await until(lambda: replica_counts(context) == {2})
        assert "could not be given more replicas, which is tried again: REQUEST_TIMED_OUT: late" in caplog.text


async def test_that_of_transactions_is_looked_after_too_with_its_own_min_isr(caplog: pytest.LogCaptureFixture) -> None:
    async with kept_up() as context:
        await ensure_coordinator_topic(context, OF_TRANSACTIONS)
        with caplog.at_level(logging.WARNING):
            await register(context, 1, 2)
            await until(lambda: f"{TRANSACTIONS}: {PARTITIONS} partitions get more replicas" in caplog.text)
        assert "transactional producers depend on those that have one" in caplog.text
        state = context.metadata.image.topics[TRANSACTIONS]
        after = {
            partition_key(TRANSACTIONS, index): replace(each, isr=(0, 1, 2), adding=()).encode()
            for index, each in enumerate(state.partitions)
        }
        with caplog.at_level(logging.INFO):
            await put(context, after)
            await until(lambda: f"{TRANSACTIONS}: {MIN_ISR} is 2 from now on" in caplog.text)
        assert MIN_ISR not in configs(context), "the other one's replicas are not in sync yet"
