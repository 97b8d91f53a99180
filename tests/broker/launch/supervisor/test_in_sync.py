"""Whether all replicas are in sync is read in the store, first where one was not the last time."""

from odradek.broker.cluster.keys import PartitionState, partition_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Snapshot, Txn
from odradek.broker.launch.supervisor.in_sync import OutOfSync


class Asked(MemoryStore):
    """Notes what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.prefixes: list[str] = []

    async def read(self, prefix: str) -> Snapshot:
        self.prefixes.append(prefix)
        return await super().read(prefix)


def state(replicas: tuple[int, ...], isr: tuple[int, ...]) -> bytes:
    return PartitionState(bytes(16), replicas, isr, replicas[0]).encode()


async def test_a_partition_that_lacks_a_replica_is_found_until_it_does_not() -> None:
    store = Asked()
    out_of_sync = OutOfSync(store)
    assert await out_of_sync.first() is None
    await store.commit(
        Txn(
            put={
                partition_key("a", 0): state((1, 2), (2, 1)),
                partition_key("b", 1): state((1, 2), (1,)),
                partition_key("c", 0): state((1,), (1,)),
            }
        )
    )
    assert await out_of_sync.first() == "b-1"
    store.prefixes.clear()
    assert await out_of_sync.first() == "b-1"
    assert store.prefixes == ["/partitions/b/1"]
    await store.commit(Txn(put={partition_key("b", 1): state((1, 2), (1, 2))}))
    assert await out_of_sync.first() is None
