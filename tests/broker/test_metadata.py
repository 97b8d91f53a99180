"""`Metadata` follows its store: listeners see each change, `applied` returns once the image has come that far."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from broker.cluster.image import ClusterImage, Delta
from broker.cluster.keys import PartitionState
from broker.cluster.memory import MemoryStore
from broker.cluster.topics import create_topic
from broker.metadata import Metadata
from client.tasks import Tasks

TOPIC_ID = bytes(range(16))
ALONE = PartitionState(topic_id=TOPIC_ID, replicas=(0,), isr=(0,), leader=0)


@pytest.fixture
async def metadata() -> AsyncIterator[Metadata]:
    tasks = Tasks(asyncio.get_running_loop())
    store = MemoryStore()
    followed = Metadata(store, ClusterImage.from_snapshot(await store.read("/")))
    tasks.start(followed.follow(), "follow")
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
