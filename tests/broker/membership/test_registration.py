"""A broker's place in the cluster: over stores that lose answers, leases that end, and images that are behind.

The rule of the lease: `require_lease` never passes once another broker could have been elected, as far as this one can
know. A history checks it by what the store says, whatever gets lost between the two.
"""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.keys import BrokerState, broker_key, decode_broker, decode_node, node_key, stopping_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Conflict, Lease, MetadataStore, Txn
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.registration import RETRY_MS, Identity, Registration, RegistrationRefused
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.tasks import Tasks
from tests.broker.cluster.faulty_store import Fate, FaultyStore
from tests.client.virtual_time import VirtualEnvironment, virtual_loop

pytestmark = pytest.mark.virtual_time

LEASE_MS = 2_000
NODE_ID = 1
KEY = broker_key(NODE_ID)
ENDPOINTS = {"PLAINTEXT": ("10.0.0.1", 9092)}
DIRECTORY = b"1" * 16
OTHER_DIRECTORY = b"2" * 16


class Registered:
    """One broker's registration, with the metadata that it follows."""

    def __init__(self, store: MetadataStore, environment: VirtualEnvironment, directory_id: bytes = DIRECTORY) -> None:
        self.store = store
        self.environment = environment
        identity = Identity(NODE_ID, ENDPOINTS, (directory_id,), "rack-1")
        self.registration = Registration(store, environment, identity, LEASE_MS)
        self.metadata = ImageFollower(store, ClusterImage())
        self.metadata.subscribe(self._follow)
        self.tasks = Tasks(environment.loop)
        self.tasks.start(self.metadata.follow(self.environment), "follow the metadata")
        self.is_heard = True
        """In place of heartbeats: the controller answers at once."""

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        if delta.brokers:
            self.registration.follow(image)
            if self.is_heard:
                self.registration.controller_answered()

    async def register(self) -> None:
        await self.registration.register()
        await self.metadata.applied(self.registration.epoch)

    def keep(self) -> None:
        self.tasks.start(self.registration.keep(), "stay registered")

    def may_serve(self) -> bool:
        try:
            self.registration.require_lease()
        except KafkaError as error:
            assert error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            return False
        return True


@asynccontextmanager
async def world(directory_id: bytes = DIRECTORY) -> AsyncGenerator[tuple[FaultyStore, Registered]]:
    store = FaultyStore()
    here = Registered(store, VirtualEnvironment(), directory_id)
    try:
        yield store, here
    finally:
        store.see()
        await here.tasks.close()
        await store.close()


async def stored(store: FaultyStore) -> BrokerState | None:
    entry = (await store.store.read(KEY)).entries.get(KEY)
    return None if entry is None else decode_broker(entry.value, NODE_ID, entry.revision)


async def sleep_ms(delay_ms: float) -> None:
    await asyncio.sleep(delay_ms / 1000)


async def fence(store: FaultyStore, epoch: int) -> None:
    """As the controller does it."""
    await store.store.commit(Txn(expect={KEY: epoch}, delete=(KEY, stopping_key(NODE_ID))))


# -- coming ------------------------------------------------------------------------------------------------------------


async def test_who_registers_is_there_under_a_lease_and_leaves_a_node_behind() -> None:
    async with world() as (store, here):
        assert not here.may_serve()
        await here.register()
        found = await stored(store)
        assert found is not None
        assert (found.epoch, found.endpoints, found.rack) == (here.registration.epoch, ENDPOINTS, "rack-1")
        assert here.may_serve()
        await sleep_ms(LEASE_MS + 1)
        assert await stored(store) is None, "nobody renewed the lease"
        node = (await store.store.read(node_key(NODE_ID))).entries[node_key(NODE_ID)]
        assert decode_node(node.value, NODE_ID).directory_ids == (DIRECTORY,)


async def test_the_same_directory_replaces_its_former_life_at_once() -> None:
    async with world() as (store, here):
        await here.register()
        reborn = Registered(store, here.environment)
        await reborn.register()
        assert reborn.registration.epoch > here.registration.epoch
        assert (await stored(store)) is not None
        await reborn.tasks.close()


async def test_another_directory_waits_for_a_dead_broker_and_is_refused_by_a_live_one() -> None:
    async with world() as (store, here):
        await here.register()
        other = Registered(store, here.environment, OTHER_DIRECTORY)
        before_ms = here.environment.monotonic_ms()
        await other.register()
        assert LEASE_MS <= here.environment.monotonic_ms() - before_ms <= LEASE_MS + 2 * RETRY_MS
        other.keep()
        with pytest.raises(RegistrationRefused, match="give this one another --node-id"):
            await Registered(store, here.environment).registration.register()
        found = await stored(store)
        assert found is not None
        assert found.directory_id == OTHER_DIRECTORY
        await other.tasks.close()


async def test_leases_in_an_in_process_store_last_so_another_directory_is_refused_at_once() -> None:
    store, environment = MemoryStore(), VirtualEnvironment()
    identity = Identity(NODE_ID, ENDPOINTS, (DIRECTORY,))
    first = Registration(store, environment, identity, LEASE_MS)
    await first.register()
    before_ms = environment.monotonic_ms()
    with pytest.raises(RegistrationRefused):
        await Registration(store, environment, Identity(NODE_ID, ENDPOINTS, (OTHER_DIRECTORY,)), LEASE_MS).register()
    assert environment.monotonic_ms() == before_ms
    await store.close()


async def test_a_registration_whose_answer_was_lost_is_replaced_by_the_next_attempt() -> None:
    async with world() as (store, here):
        store.fates.extend([Fate.ANSWERED, Fate.LOST])
        with pytest.raises(OSError, match="lost"):
            await here.registration.register()
        assert await stored(store) is not None
        assert not here.may_serve()
        await here.register()
        found = await stored(store)
        assert found is not None
        assert found.epoch == here.registration.epoch
        assert here.may_serve()


async def test_a_registration_that_arrives_late_changes_nothing() -> None:
    async with world() as (store, here):
        store.fates.extend([Fate.ANSWERED, Fate.LATE])
        with pytest.raises(OSError, match="does not answer"):
            await here.registration.register()
        await here.register()
        (result,) = await store.deliver()
        assert isinstance(result, Conflict)
        found = await stored(store)
        assert found is not None
        assert found.epoch == here.registration.epoch


async def test_a_lease_that_ends_while_the_registration_is_under_way_is_replaced() -> None:
    async with world() as (store, here):
        store.fates.extend([Fate.ANSWERED, Fate.HELD])
        registering = asyncio.ensure_future(here.register())
        await sleep_ms(LEASE_MS + 1)
        await store.deliver()
        await registering
        found = await stored(store)
        assert found is not None
        assert len(store.leases) == 2
        assert here.may_serve()


# -- staying -----------------------------------------------------------------------------------------------------------


async def test_it_renews_for_as_long_as_it_is_kept() -> None:
    async with world() as (store, here):
        await here.register()
        epoch = here.registration.epoch
        here.keep()
        for _ in range(50):
            await sleep_ms(LEASE_MS / 3)
            assert here.may_serve()
        found = await stored(store)
        assert found is not None
        assert found.epoch == epoch


async def test_cut_off_it_serves_no_longer_than_the_lease_less_a_tenth() -> None:
    async with world() as (store, here):
        await here.register()
        here.keep()
        await sleep_ms(10_000)
        store.is_cut = True
        for _ in range(100):
            assert not here.may_serve() or await stored(store) is not None
            await sleep_ms(LEASE_MS / 50)
        assert not here.may_serve()
        assert await stored(store) is None


@pytest.mark.parametrize("next_ms", [0.0, 0.1 * LEASE_MS])
async def test_a_renewal_that_is_lost_costs_nothing_though_the_next_answer_is_slow(next_ms: float) -> None:
    """Each second one gets no answer within a quarter of the lease (etcd/lease.py), and is tried again soon."""
    async with world() as (store, here):
        store.renewals.extend([(LEASE_MS / 4, False), (next_ms, True)] * 20)
        await here.register()
        epoch = here.registration.epoch
        here.keep()
        for _ in range(500):
            assert here.may_serve()
            await sleep_ms(LEASE_MS / 50)
        assert len(store.renewals) < 30
        assert here.registration.epoch == epoch


async def test_after_a_cut_it_registers_anew() -> None:
    async with world() as (store, here):
        renewed: list[float] = []
        here.registration.on_renewed = lambda: renewed.append(here.environment.monotonic_ms())
        await here.register()
        epoch = here.registration.epoch
        here.keep()
        store.is_cut = True
        await sleep_ms(2 * LEASE_MS)
        assert here.registration.is_silent
        store.is_cut = False
        await sleep_ms(2 * RETRY_MS)
        assert here.registration.epoch > epoch
        assert here.may_serve()
        assert not here.registration.is_silent
        assert len(renewed) == 1


async def test_a_process_that_slept_through_its_lease_serves_only_after_its_image_follows() -> None:
    """What lies in its buffers would be answered by a leader that was replaced meanwhile."""
    async with world() as (store, here):
        await here.register()
        epoch = here.registration.epoch
        store.blind()
        await sleep_ms(2 * LEASE_MS)  # nobody renews: the process was stopped
        here.keep()
        await sleep_ms(LEASE_MS)
        assert here.registration.epoch > epoch, "registered under a new lease"
        assert not here.may_serve()
        store.see()
        await virtual_loop().settle()
        assert here.may_serve()


async def test_who_is_fenced_before_it_hears_that_it_is_registered_registers_anew() -> None:
    """A controller may find nobody at its address yet; the store's answer may come behind the news of both."""
    async with world() as (store, here):
        store.answer_ms = 100.0
        registering = asyncio.create_task(here.registration.register())
        first = (await _there(store)).epoch
        await fence(store, first)
        await here.metadata.applied((await store.store.read(KEY)).revision)
        await registering
        assert here.registration.epoch == first
        store.answer_ms = 0.0
        here.keep()
        here.registration.controller_answered()
        await sleep_ms(2 * LEASE_MS)
        assert here.registration.epoch > first
        assert here.may_serve()


async def _there(store: FaultyStore) -> BrokerState:
    while (found := await stored(store)) is None:
        await sleep_ms(1)
    return found


# -- going -------------------------------------------------------------------------------------------------------------


async def test_leaving_takes_everything_back() -> None:
    async with world() as (store, here):
        await here.register()
        await here.registration.announce_stop()
        assert (await store.store.read(stopping_key(NODE_ID))).entries
        await here.registration.leave()
        assert await stored(store) is None
        assert not (await store.store.read(stopping_key(NODE_ID))).entries
        assert not here.may_serve()


async def test_who_is_fenced_while_it_stops_does_not_come_back() -> None:
    """Else the controller would have it lead again, and its sockets are closed."""
    async with world() as (store, here):
        await here.register()
        here.keep()
        await here.registration.announce_stop()
        await fence(store, here.registration.epoch)
        await sleep_ms(3 * LEASE_MS)
        assert await stored(store) is None


async def test_who_loses_its_lease_while_it_stops_does_not_come_back() -> None:
    async with world() as (store, here):
        await here.register()
        here.keep()
        await here.registration.announce_stop()
        store.is_cut = True
        await sleep_ms(2 * LEASE_MS)
        store.is_cut = False
        await sleep_ms(2 * LEASE_MS)
        assert await stored(store) is None


async def test_a_stop_cannot_be_announced_for_a_later_registration() -> None:
    async with world() as (store, here):
        await here.register()
        await fence(store, here.registration.epoch)
        with pytest.raises(Conflict):
            await here.registration.announce_stop()
        assert not (await store.store.read(stopping_key(NODE_ID))).entries


async def test_a_registration_that_cannot_be_taken_back_ends_by_itself() -> None:
    async with world() as (store, here):
        await here.register()
        store.is_cut = True
        await here.registration.leave()
        assert not here.may_serve()
        await sleep_ms(LEASE_MS + 1)
        assert await stored(store) is None


async def test_who_leaves_does_not_wait_for_a_store_that_is_silent() -> None:
    """A clean stop has seconds only, and an answer that does not come would take most of them."""
    async with world() as (store, here):
        await here.register()
        here.keep()
        store.is_cut = True
        await sleep_ms(LEASE_MS / 2)
        assert here.registration.is_silent
        store.is_cut = False
        await here.registration.leave()
        assert not here.may_serve()
        assert await stored(store) is not None, "nobody asked the store"
        await sleep_ms(LEASE_MS)
        assert await stored(store) is None


async def test_a_lease_is_what_the_store_granted() -> None:
    async with world() as (store, here):
        await here.register()
        lease: Lease | None = here.registration.lease
        assert lease is store.leases[0]


# -- histories ---------------------------------------------------------------------------------------------------------

HISTORIES = 25
STEPS = 80
WHAT_HAPPENS = ["cut", "heal", "heal", "blind", "see", "see", "fence", "deaf", "lose", "wait", "wait"]


async def test_it_never_serves_once_others_could_have_been_elected() -> None:
    """Others can be elected as soon as the registration that this broker relies on is gone from the store.

    Known to this broker is what its image holds, and that a lease which it did not renew in time may have ended; for
    a fencing of which its image does not tell yet it is not to blame.
    """
    served = 0
    for seed in range(HISTORIES):
        chance = random.Random(seed)
        async with world() as (store, here):
            await here.register()
            here.keep()
            for _ in range(STEPS):
                match chance.choice(
                    ("cut", "heal", "heal", "blind", "see", "see", "fence", "deaf", "lose", "wait", "wait")
                ):
                    case "cut":
                        store.is_cut = True
                    case "heal":
                        store.is_cut = False
                    case "blind":
                        store.blind()
                    case "see":
                        store.see()
                    case "fence":
                        if (found := await stored(store)) is not None and chance.random() < 0.3:
                            await fence(store, found.epoch)
                    case "deaf":
                        here.is_heard = not here.is_heard
                    case "lose":
                        store.fates.append(chance.choice((Fate.LOST, Fate.REFUSED)))
                    case _:
                        pass
                await sleep_ms(chance.choice((0, 1, 50, 200, 900, 2_500)))
                registration, image = here.registration, here.metadata.image
                if here.may_serve():
                    served += 1
                    known = image.brokers.get(NODE_ID)
                    assert known is not None, f"seed {seed}"
                    assert known.epoch == registration.epoch, f"seed {seed}"
                    found = await stored(store)
                    was_fenced = found is None and any(KEY in txn.delete for txn in store.commits)
                    lease = registration.lease
                    assert lease is not None, f"seed {seed}"
                    assert found is not None or was_fenced or _is_alive(store, lease), f"seed {seed}"
            store.is_cut = False
            store.see()
            store.fates.clear()
            here.registration.controller_answered()
            await sleep_ms(3 * LEASE_MS)
            assert here.may_serve(), f"seed {seed}: it comes back when everything is well"
    assert served > HISTORIES * STEPS / 10, "histories in which nothing is served show nothing"


def _is_alive(store: FaultyStore, lease: Lease) -> bool:
    return store.store._state.is_granted(lease.lease_id)  # pyright: ignore[reportPrivateUsage]
