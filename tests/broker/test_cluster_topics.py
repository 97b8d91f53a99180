"""The cluster's topics as groups see them: the same objects until something changes, and each change by its name."""

from odradek.broker.cluster.image import ClusterImage, compare
from odradek.broker.cluster.keys import BrokerState, PartitionState, broker_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.broker.cluster.topics import add_partitions, create_topic, delete_topic
from odradek.broker.cluster_topics import ClusterTopics

ID, OTHER_ID = b"i" * 16, b"o" * 16


class Cluster:
    """A store, the image that follows it, and the view of that."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.image = ClusterImage()
        self.topics = ClusterTopics(self.image)

    async def follow(self) -> set[str]:
        """The view has what the store has; the names that have changed."""
        before, self.image = self.image, ClusterImage.from_snapshot(await self.store.read("/"))
        return set(self.topics.follow(self.image, compare(before, self.image)))

    async def create(self, name: str, topic_id: bytes, replicas: tuple[int, ...] = (0,)) -> None:
        await create_topic(self.store, name, topic_id, [PartitionState(topic_id, replicas, replicas, replicas[0])], {})

    async def register(self, broker_id: int, rack: str | None) -> None:
        state = BrokerState(broker_id, {}, rack)
        await self.store.commit(Txn(put={broker_key(broker_id): state.encode()}))


async def test_topics_that_are_created_enlarged_made_again_and_deleted_are_named() -> None:
    cluster = Cluster()
    await cluster.create("orders", ID)
    await cluster.create("bills", OTHER_ID)
    assert await cluster.follow() == {"orders", "bills"}
    orders = cluster.topics.by_name("orders")
    assert orders is not None
    assert (orders.topic_id, orders.partition_count, orders.racks) == (ID, 1, ())
    assert set(cluster.topics.names()) == {"orders", "bills"}
    await add_partitions(cluster.store, cluster.image.topics["orders"], [PartitionState(ID, (0,), (0,), 0)])
    assert await cluster.follow() == {"orders"}
    orders = cluster.topics.by_name("orders")
    assert orders is not None
    assert orders.partition_count == 2
    await delete_topic(cluster.store, cluster.image.topics["orders"])
    await cluster.create("orders", b"n" * 16)
    assert await cluster.follow() == {"orders"}
    assert (cluster.topics.by_id(ID), cluster.topics.by_id(b"n" * 16)) == (None, cluster.topics.by_name("orders"))
    await delete_topic(cluster.store, cluster.image.topics["orders"])
    assert await cluster.follow() == {"orders"}
    assert (cluster.topics.by_name("orders"), list(cluster.topics.names())) == (None, ["bills"])


async def test_a_topic_is_the_same_object_until_something_of_it_matters() -> None:
    cluster = Cluster()
    await cluster.create("orders", ID, (0, 1))
    await cluster.follow()
    orders = cluster.topics.by_name("orders")
    await cluster.create("bills", OTHER_ID)
    assert await cluster.follow() == {"bills"}
    assert cluster.topics.by_name("orders") is orders
    await cluster.register(0, None)
    assert await cluster.follow() == set()
    assert cluster.topics.by_name("orders") is orders


async def test_racks_change_the_topics_that_have_replicas_there() -> None:
    cluster = Cluster()
    await cluster.create("orders", ID, (0, 1))
    await cluster.create("bills", OTHER_ID, (2,))
    await cluster.register(0, "a")
    await cluster.follow()
    names = [topic.racks for name in ("orders", "bills") if (topic := cluster.topics.by_name(name)) is not None]
    assert names == [(frozenset({"a"}),), (frozenset(),)]
    await cluster.register(1, "b")
    assert await cluster.follow() == {"orders"}
    orders = cluster.topics.by_name("orders")
    assert orders is not None
    assert orders.racks == (frozenset({"a", "b"}),)
