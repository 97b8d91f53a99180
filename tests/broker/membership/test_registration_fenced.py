"""A broker that is fenced though it lives: when it registers anew, and what it does until then."""

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.membership.registration import RETRY_MS, UNHEARD_LEASES
from tests.broker.membership.test_registration import LEASE_MS, Registered, fence, sleep_ms, stored, world
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time


async def test_fenced_though_it_lives_it_registers_anew_under_the_same_lease() -> None:
    async with world() as (store, here):
        await here.register()
        epoch = here.registration.epoch
        here.keep()
        await fence(store, epoch)
        await virtual_loop().settle()
        found = await stored(store)
        assert found is not None
        assert found.epoch == here.registration.epoch > epoch
        assert len(store.leases) == 1
        assert here.may_serve()


async def test_fenced_unheard_it_waits_for_an_answer_of_the_controller_but_not_forever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It would be given partitions, and lose them again for its silence, over and over."""
    async with world() as (store, here):
        here.is_heard = False
        await here.register()
        here.keep()
        epoch = here.registration.epoch
        await fence(store, epoch)
        await sleep_ms((UNHEARD_LEASES - 1) * LEASE_MS)
        assert await stored(store) is None
        assert len(store.leases) == 1, "which is renewed meanwhile"
        assert "a controller that it does not reach" in caplog.text
        await sleep_ms(1.5 * LEASE_MS)
        found = await stored(store)
        assert found is not None
        assert found.epoch > epoch
        await fence(store, found.epoch)
        await sleep_ms(LEASE_MS)
        assert await stored(store) is None, "nobody has answered since then"
        here.registration.controller_answered()
        await virtual_loop().settle()
        assert await stored(store) is not None
        assert here.may_serve()


async def test_a_broker_registration_seen_before_its_answer_is_not_taken_for_a_fencing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world() as (store, here):
        here.is_heard = False
        store.answer_ms = RETRY_MS
        for _ in range(2):
            await here.register()
        here.keep()
        await sleep_ms(5 * LEASE_MS)
        assert here.may_serve()
        assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_a_fenced_broker_serves_only_once_it_is_reregistered_and_its_image_follows() -> None:
    """Others may have been elected between the two, and our image, behind, does not say so yet."""
    async with world() as (store, here):
        await here.register()
        await fence(store, here.registration.epoch)
        await virtual_loop().settle()
        assert not here.may_serve(), "it knows that it was fenced"
        store.blind()
        await here.registration.register()
        assert not here.may_serve(), "its lease is certain, its image is not as new as its registration"
        store.see()
        await here.metadata.applied(here.registration.epoch)
        assert here.may_serve()


async def test_two_processes_with_copies_of_one_directory_do_not_keep_the_cluster_busy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world() as (store, here):
        copy = Registered(store, here.environment)
        for each in (here, copy):
            await each.register()
            each.keep()
        before = (await store.store.read("/")).revision
        await sleep_ms(10_000)
        assert (await store.store.read("/")).revision - before <= 10_000 / RETRY_MS + 2
        assert "copy of its data directory" in caplog.text
        await copy.tasks.close()


async def test_an_older_image_does_not_fence_anybody() -> None:
    async with world() as (store, here):
        store.blind()
        await here.registration.register()
        epoch = here.registration.epoch
        here.registration.follow(ClusterImage(revision=epoch - 1))
        here.keep()
        await virtual_loop().settle()
        assert here.registration.epoch == epoch
