"""`Metadata` follows its store: listeners see each change, `applied` returns once the image has come that far."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from broker.cluster import state
from broker.cluster.image import ClusterImage, Delta
from broker.cluster.keys import PartitionState
from broker.cluster.memory import MemoryStore
from broker.cluster.topics import create_topic
from broker.metadata import RETRY_MS, Metadata
from client.environment import Environment
from client.tasks import Tasks
from tests.broker.cluster.faulty_store import FaultyStore
from tests.client.virtual_time import VirtualEnvironment

TOPIC_ID = bytes(range(16))
ALONE = PartitionState(topic_id=TOPIC_ID, replicas=(0,), isr=(0,), leader=0)


@pytest.fixture
async def metadata() -> AsyncIterator[Metadata]:
    tasks = Tasks(asyncio.get_running_loop())
    store = MemoryStore()
    followed = Metadata(store, ClusterImage.from_snapshot(await store.read("/")))
    tasks.start(followed.follow(Environment()), "follow")
    yield followed
    await store.close()
    await tasks.close()


async def test_after_applied_the_image_holds_what_was_committed(metadata: Metadata) -> None:
    seen: list[Delta] = []
    metadata.subscribe(lambda _, delta: seen.append(delta))
    revision = await create_topic(metadata.store, "orders", TOPIC_ID, [ALONE], {})
    await asyncio.wait_for(metadata.applied(revision), 5)
    assert list(metadata.image.topics) == ["orders"]
    assert [topic.name for delta in seen for topic in delta.created] == ["orders"]


async def test_a_listener_that_fails_is_logged_and_the_image_goes_on(
    metadata: Metadata, caplog: pytest.LogCaptureFixture
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
    metadata: Metadata, monkeypatch: pytest.MonkeyPatch
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
    followed = Metadata(store, ClusterImage())
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
