"""A change counts everywhere once all brokers have said so, or are gone for long enough; time is virtual."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.acls import acl_key, encode_acl
from odradek.broker.cluster.keys import broker_key
from odradek.broker.cluster.store import Txn
from odradek.broker.controller.acl_spread import AclSpread
from odradek.broker.membership.standing import TERM_MS
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.access.rules import acl
from tests.broker.controller.brokers import Brokers, brokers, settle, sleep_ms

pytestmark = pytest.mark.virtual_time

TIMEOUT_MS = 20_000
CONTROLLER, ONE, TWO = 1, 2, 3


class World:
    def __init__(self, cluster: Brokers) -> None:
        self.cluster = cluster
        member = cluster[CONTROLLER]
        self.spread = AclSpread(member.controller, member.metadata, member.registration, member.environment)

    def says(self, node_id: int) -> None:
        """A heartbeat comes, with what the broker knows."""
        member = self.cluster[node_id]
        self.spread.heard(node_id, member.registration.epoch, member.metadata.image.revision)

    async def change(self) -> None:
        await self.cluster.store.commit(Txn(put={acl_key(acl()): encode_acl(acl())}))
        await settle()


@asynccontextmanager
async def world() -> AsyncGenerator[World]:
    """Long after the election."""
    async with brokers(3) as cluster:
        assert cluster.active() == [CONTROLLER]
        here = World(cluster)
        await sleep_ms(2 * TERM_MS)
        yield here


async def test_it_is_answered_when_all_have_said_so() -> None:
    async with world() as here:
        await here.change()
        waiting = asyncio.ensure_future(here.spread.everywhere(TIMEOUT_MS))
        await settle()
        assert not waiting.done()
        here.says(ONE)
        await settle()
        assert not waiting.done()
        here.says(TWO)
        await asyncio.wait_for(waiting, 1)


async def test_a_heartbeat_from_before_does_not_count() -> None:
    async with world() as here:
        here.cluster[TWO].store.blind()
        await here.change()
        here.says(ONE)
        here.says(TWO)
        waiting = asyncio.ensure_future(here.spread.everywhere(TIMEOUT_MS))
        await sleep_ms(1000)
        assert not waiting.done()
        here.cluster[TWO].store.see()
        await settle()
        here.says(TWO)
        await asyncio.wait_for(waiting, 1)


async def test_one_that_says_nothing_is_waited_for_until_time_is_up_and_named() -> None:
    async with world() as here:
        await here.change()
        here.says(ONE)
        with pytest.raises(KafkaError, match=r"the change is stored, but broker\(s\) 3 have not confirmed") as raised:
            await here.spread.everywhere(TIMEOUT_MS)
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT


async def test_one_that_is_fenced_is_waited_for_as_long_as_it_may_go_by_what_it_knew() -> None:
    async with world() as here:
        here.cluster[TWO].store.is_cut = True
        here.cluster[TWO].store.blind()
        await here.change()
        here.says(ONE)
        began_ms = here.cluster[CONTROLLER].environment.monotonic_ms()
        waiting = asyncio.ensure_future(here.spread.everywhere(TIMEOUT_MS))
        await sleep_ms(500)
        await here.cluster.store.commit(Txn(delete=(broker_key(TWO),)))
        await waiting
        took_ms = here.cluster[CONTROLLER].environment.monotonic_ms() - began_ms
        assert 500 + TERM_MS <= took_ms <= 600 + TERM_MS


async def test_who_is_not_the_controller_any_more_answers_nothing() -> None:
    async with world() as here:
        await here.change()
        waiting = asyncio.ensure_future(here.spread.everywhere(TIMEOUT_MS))
        await settle()
        await here.cluster[CONTROLLER].controller.resign(1000, "a test")
        with pytest.raises(KafkaError) as raised:
            await waiting
        assert raised.value.code is ErrorCode.NOT_CONTROLLER
