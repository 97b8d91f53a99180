"""`Metadata` follows its store: listeners see each change, `applied` returns once the image has come that far."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace

import pytest

from odradek.broker.cluster import state
from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.keys import CLUSTER_KEY, PartitionState
from odradek.broker.cluster.lineage import Lineage
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.stamped_store import StampedStore
from odradek.broker.cluster.store import Change, Snapshot, StoreWentBack, Txn
from odradek.broker.cluster.topics import create_topic, delete_topic
from odradek.broker.membership.image_follower import RETRY_MS, ImageFollower
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from tests.broker.cluster.faulty_store import FaultyStore
from tests.broker.cluster.old_copies import OldStore
from tests.client.virtual_time import VirtualEnvironment

TOPIC_ID = bytes(range(16))
ALONE = PartitionState(topic_id=TOPIC_ID, replicas=(0,), isr=(0,), leader=0)


@pytest.fixture
async def metadata() -> AsyncIterator[ImageFollower]:
    tasks = Tasks(asyncio.get_running_loop())
    store = MemoryStore()
    followed = ImageFollower(store, ClusterImage.from_snapshot(await store.read("/")))
    tasks.start(followed.follow(Environment()), "follow")
    yield followed
    await store.close()
    await tasks.close()


async def test_after_applied_the_image_holds_what_was_committed(metadata: ImageFollower) -> None:
    seen: list[Delta] = []
    metadata.subscribe(lambda _, delta: seen.append(delta))
    revision = await create_topic(metadata.store, "orders", TOPIC_ID, [ALONE], {})
    await asyncio.wait_for(metadata.applied(revision), 5)
    assert list(metadata.image.topics) == ["orders"]
    assert [topic.name for delta in seen for topic in delta.created] == ["orders"]


async def test_a_listener_that_fails_is_logged_and_the_image_goes_on(
    metadata: ImageFollower, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(image: ClusterImage, delta: Delta) -> None:
        raise LookupError("a listener with a mistake in it")

    metadata.subscribe(fail)
    with caplog.at_level(logging.ERROR):
        revision = await create_topic(metadata.store, "orders", TOPIC_ID, [ALONE], {})
        await asyncio.wait_for(metadata.applied(revision), 5)
    assert "a listener with a mistake in it" in caplog.text
    assert "orders" in metadata.image.topics


async def test_changes_that_the_store_no_longer_keeps_are_made_up_for_by_reading_all(
    metadata: ImageFollower, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history of the store is cut while the follower has not looked: it reads again, and compares."""
    monkeypatch.setattr(state, "HISTORY_CHANGES_MAX", 1)
    seen: list[str] = []
    metadata.subscribe(lambda _, delta: seen.extend(topic.name for topic in delta.created))
    revision = 0
    for name in ("one", "two", "three"):  # without a pause in which the follower could follow
        topic_id = name.encode().ljust(16)
        revision = await create_topic(metadata.store, name, topic_id, [replace(ALONE, topic_id=topic_id)], {})
    await asyncio.wait_for(metadata.applied(revision), 5)
    assert sorted(metadata.image.topics) == sorted(seen) == ["one", "three", "two"]


@pytest.mark.virtual_time
async def test_a_store_that_cannot_be_read_again_is_asked_until_it_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Else the broker would go on for good with what it knew."""
    monkeypatch.setattr(state, "HISTORY_CHANGES_MAX", 1)
    environment, store = VirtualEnvironment(seed=1), FaultyStore()
    followed = ImageFollower(store, ClusterImage())
    tasks = Tasks(environment.loop)
    following = tasks.start(followed.follow(environment), "follow")
    revision = 0
    for name in ("one", "two", "three"):
        topic_id = name.encode().ljust(16)
        revision = await create_topic(store.store, name, topic_id, [replace(ALONE, topic_id=topic_id)], {})
    store.is_cut = True
    with caplog.at_level(logging.WARNING):
        await environment.sleep(10 * RETRY_MS)
    assert caplog.text.count("tried again") == 1
    assert not following.done()
    store.is_cut = False
    await asyncio.wait_for(followed.applied(revision), 5)
    assert sorted(followed.image.topics) == ["one", "three", "two"]
    await store.close()
    await following
    await tasks.close()


# -- the same history -------------------------------------------------------------------------------------------------


class WatchedStore(OldStore):
    """Counts what is read of the cluster's keys, and can say that the way was lost."""

    def __init__(self) -> None:
        super().__init__()
        self.compared = 0
        self.lost = asyncio.Event()

    async def read(self, prefix: str) -> Snapshot:
        self.compared += prefix == CLUSTER_KEY
        return await super().read(prefix)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        await self.lost.wait()
        yield Change(after, ())
        async with aclosing(super().watch(prefix, after)) as changes:
            async for change in changes:
                yield change


async def begun(store: OldStore) -> tuple[StampedStore, ImageFollower]:
    """A process that has begun, and a topic."""
    stamped = StampedStore(store, 1, "a")
    stamped.begin(Lineage())
    await create_topic(stamped, "orders", TOPIC_ID, [ALONE], {})
    return stamped, ImageFollower(stamped, ClusterImage.from_snapshot(await store.read("/")))


async def test_a_store_that_was_set_back_is_refused_before_anything_of_it_is_taken() -> None:
    """It has gone on, past the revision at which it was left, without the topic, and with another one in its place."""
    store = OldStore()
    before = store.saved()
    _, metadata = await begun(store)
    deltas: list[Delta] = []
    metadata.subscribe(lambda _, delta: deltas.append(delta))
    store.become(*before)
    other = StampedStore(store, 2, "b")
    other.begin(Lineage())
    await create_topic(other, "orders", bytes(16), [replace(ALONE, topic_id=bytes(16))], {})
    for number in range(5):
        await other.commit(Txn(put={f"/of-others/{number}": b""}))
    with pytest.raises(StoreWentBack, match=r"set back to an older state, .*: it lacks what broker 1 wrote"):
        await metadata.follow(Environment())
    assert deltas == []
    assert metadata.image.topics["orders"].topic_id == TOPIC_ID


async def test_a_way_that_was_lost_is_compared_although_nothing_has_changed() -> None:
    store = WatchedStore()
    before = store.saved()
    _, metadata = await begun(store)
    store.become(*before)
    for _ in range(5):
        await store.commit(Txn(put={"/of-others": b""}))
    following = asyncio.ensure_future(metadata.follow(Environment()))
    store.lost.set()
    with pytest.raises(StoreWentBack, match="it lacks what broker 1 wrote"):
        await asyncio.wait_for(following, 5)


async def test_the_store_is_compared_before_a_topic_is_deleted_and_not_for_each_change() -> None:
    store = WatchedStore()
    stamped, metadata = await begun(store)
    store.lost.set()
    following = asyncio.ensure_future(metadata.follow(Environment()))
    counts: list[int] = []
    for _ in range(3):
        await metadata.applied(await stamped.commit(Txn(put={"/x": b""})))
        counts.append(store.compared)
    assert counts == [1, 1, 1], "when the way was found, and not again"
    seen: list[tuple[int, Delta]] = []
    metadata.subscribe(lambda _, delta: seen.append((store.compared, delta)))
    await metadata.applied(await delete_topic(stamped, metadata.image.topics["orders"]))
    ((compared, delta),) = seen
    assert (compared, [topic.name for topic in delta.deleted]) == (2, ["orders"])
    await store.close()
    await following


async def test_a_topic_missing_after_a_full_reread_has_vanished_and_was_not_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "HISTORY_CHANGES_MAX", 1)
    store = OldStore()
    stamped, metadata = await begun(store)
    seen: list[Delta] = []
    metadata.subscribe(lambda _, delta: seen.append(delta))
    await delete_topic(stamped, metadata.image.topics["orders"])
    revision = await stamped.commit(Txn(put={"/x": b""}))
    following = asyncio.ensure_future(metadata.follow(Environment()))
    await asyncio.wait_for(metadata.applied(revision), 5)
    assert [(delta.deleted, [topic.name for topic in delta.vanished]) for delta in seen] == [((), ["orders"])]
    await store.close()
    await following


async def test_a_store_that_was_set_back_is_refused_where_all_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = OldStore()
    before = store.saved()
    _, metadata = await begun(store)
    store.become(*before)
    monkeypatch.setattr(state, "HISTORY_CHANGES_MAX", 1)
    for number in range(9):
        await store.commit(Txn(put={f"/of-others/{number}": b""}))
    with pytest.raises(StoreWentBack, match="it lacks what broker 1 wrote"):
        await metadata.follow(Environment())
    assert "orders" in metadata.image.topics
