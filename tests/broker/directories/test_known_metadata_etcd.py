"""Three brokers on a real etcd that is set back to a snapshot, which others then move on: by revisions it looks newest.

The brokers run in this process, each on a memory disk of its own and on its own connections to etcd. Who is refused has
lost nothing, and with the right etcd all go on.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.cluster.store import Txn
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.server import Broker
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.runtime.environment import Environment
from processes.etcd_server import EtcdServer
from processes.etcd_stores import etcd_store
from tests.broker.log.logs import copied
from tests.broker.wire import batch, connected, produced, settings

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

PATIENCE_S = 30.0
OPTIONS = {"min.insync.replicas": "2", "replica.lag.time.max.ms": "1000"}
FOREIGN = 200
"""So many keys another program writes: more than the brokers have made changes since the snapshot."""
REFUSAL = (
    r"does not follow the one that data knows: it lacks what broker \d wrote at revision \d+.*odradek cluster rebuild"
)


class Machine:
    """A broker's disk, and the broker that runs on it."""

    def __init__(self, node_id: int, address: str) -> None:
        self.node_id = node_id
        self.disk = MemoryDisk()
        self.failed = asyncio.Event()
        self._address = address

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Broker]:
        """A broker, from its start to its clean stop."""
        async with etcd_store(self._address) as store:
            broker = Broker(settings("data", OPTIONS, self.node_id), Environment(), self.disk, store=store)
            broker.on_failure = self.failed.set
            await broker.start()
            try:
                yield broker
            finally:
                await broker.stop()

    async def is_refused(self, why: str = REFUSAL) -> None:
        """A start is, and has changed nothing."""
        before = self.logs()
        with pytest.raises(ForeignDirectory, match=why):
            async with self.running():
                pass
        assert self.logs() == before

    def logs(self) -> dict[str, bytes]:
        """The partitions' directories, with what was appended to each."""
        names = [name for name in self.disk.list_dir("data") if self.disk.is_dir(f"data/{name}")]
        return {name: self.disk.read_whole(f"data/{name}/{'0' * 20}.log").rstrip(b"\0") for name in names}


async def until(condition: Callable[[], bool], broker: Broker) -> None:
    """Returns when the condition holds; it is looked at whenever the metadata of a broker has changed."""
    metadata = broker.context.metadata
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await metadata.revision.reach(metadata.image.revision + 1)


async def create(broker: Broker, name: str) -> None:
    """A topic with three replicas."""
    async with connected(broker) as client:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=3, assignments=[], configs=[])
        response = await client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 5)
        assert response.topics[0].error_code == 0, response.topics[0].error_message


async def send(brokers: Sequence[Broker], topic: str, value: bytes) -> None:
    """With acks=all, to whoever leads."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            metadata = brokers[0].context.metadata
            seen = metadata.image.revision
            for broker in brokers:
                async with connected(broker) as client:
                    if (await produced(client, topic, batch(value))).error_code == 0:
                        return
            await metadata.revision.reach(seen + 1)


async def older_copy(snapshot: Path) -> Path:
    """The snapshot as it becomes when another program goes on writing: its revision is above all that were before."""
    older = snapshot.with_name("older")
    with EtcdServer() as etcd:
        await asyncio.to_thread(etcd.set_back, snapshot)
        await foreign_writes(etcd)
        etcd.save(older)
    return older


async def foreign_writes(etcd: EtcdServer) -> None:
    async with etcd_store(etcd.address("/of-others")) as others:
        for number in range(FOREIGN):
            await others.commit(Txn(put={"/key": b"%d" % number}))


async def begun(stack: AsyncExitStack, machines: Sequence[Machine]) -> list[Broker]:
    """All of them, with a topic and a record in it that each of them has."""
    brokers = [await stack.enter_async_context(machine.running()) for machine in machines]
    await create(brokers[0], "orders")
    await send(brokers, "orders", b"before")
    return brokers


async def test_who_knows_less_may_start_on_an_older_etcd_and_who_knows_more_never_follows(tmp_path: Path) -> None:
    """Broker 3 was killed right behind the snapshot, and the others acknowledged more without it. Then it starts first,
    and etcd goes past all that the others know."""
    snapshot, newest = tmp_path / "snapshot", tmp_path / "newest"
    with EtcdServer() as etcd:
        one, two, three = [Machine(node_id, etcd.address("/older")) for node_id in (1, 2, 3)]
        async with one.running() as first, two.running() as second:
            async with three.running() as third:
                await create(first, "orders")
                await send([first, second, third], "orders", b"before")
                etcd.save(snapshot)
                killed = copied(three.disk, MemoryDisk())
            await until(lambda: 3 not in first.context.metadata.image.topics["orders"].partitions[0].isr, first)
            await send([first, second], "orders", b"without the third")
        etcd.save(newest)
        three.disk = killed
        await asyncio.to_thread(etcd.set_back, snapshot)
        async with three.running():
            await foreign_writes(etcd)
            await one.is_refused()
            await two.is_refused()
        await asyncio.to_thread(etcd.set_back, newest)
        await three.is_refused(r"knows: it is at revision \d+, and was at \d+ before")
        async with one.running() as first, two.running() as second:
            await send([first, second], "orders", b"again")
        assert all(b"without the third" in machine.logs()["orders-0"] for machine in (one, two))


async def test_an_older_etcd_that_others_have_moved_on_is_refused_by_all(tmp_path: Path) -> None:
    """All brokers are stopped, and the first one that starts does not know less than the others."""
    snapshot, newest = tmp_path / "snapshot", tmp_path / "newest"
    with EtcdServer() as etcd:
        machines = [Machine(node_id, etcd.address("/older")) for node_id in (1, 2, 3)]
        async with AsyncExitStack() as stack:
            brokers = await begun(stack, machines)
            etcd.save(snapshot)
            await create(brokers[0], "later")
            await send(brokers, "later", b"kept")
        etcd.save(newest)
        await asyncio.to_thread(etcd.set_back, await older_copy(snapshot))
        for machine in machines:
            await machine.is_refused()
            assert set(machine.logs()) == {"orders-0", "later-0"}, "none was put aside"
        await asyncio.to_thread(etcd.set_back, newest)
        async with AsyncExitStack() as stack:
            brokers = [await stack.enter_async_context(machine.running()) for machine in machines]
            await send(brokers, "later", b"again")


async def test_an_older_etcd_under_running_brokers_ends_them_all(tmp_path: Path) -> None:
    """None deletes a topic that it does not know, nor lets another one of its name take the place."""
    snapshot = tmp_path / "snapshot"
    with EtcdServer() as etcd:
        machines = [Machine(node_id, etcd.address("/older")) for node_id in (1, 2, 3)]
        async with AsyncExitStack() as stack:
            brokers = await begun(stack, machines)
            etcd.save(snapshot)
            await create(brokers[0], "later")
            await send(brokers, "later", b"kept")
            older = await older_copy(snapshot)
            await asyncio.to_thread(etcd.set_back, older)
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(*(machine.failed.wait() for machine in machines))
            for broker in brokers:
                assert broker.failure is not None
                assert "was set back to an older state" in broker.failure
                assert "it lacks what broker" in broker.failure
                assert "(odradek cluster restore), or rebuild it from the directories" in broker.failure
        for machine in machines:
            assert b"kept" in machine.logs()["later-0"]
            assert set(machine.logs()) == {"orders-0", "later-0"}
            await machine.is_refused()
