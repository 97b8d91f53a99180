"""A broker within a program goes on when somebody cancels all tasks there, as `asyncio.run` does at its end."""

import asyncio

from odradek import Admin, NewTopic, Producer
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.runtime.tasks import running_tasks
from tests.broker.servers import broker_on, started


async def test_a_broker_goes_on_when_all_tasks_are_cancelled() -> None:
    """Connections, the controller and the metadata: a topic is created, and written to, before and after."""
    before = asyncio.all_tasks()
    async with started(broker_on(MemoryDisk())) as broker:
        [endpoint] = broker.bound.values()
        server = f"{endpoint.host}:{endpoint.port}"
        async with Admin(server) as admin, Producer(server) as producer:
            await admin.create_topics([NewTopic("orders", 1)])
            assert (await (await producer.send("orders", b"first"))).offset == 0
            assert running_tasks()
            assert asyncio.all_tasks() == before, "tasks that anybody can find"
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)
            assert (await (await producer.send("orders", b"second"))).offset == 1
            await admin.create_topics([NewTopic("payments", 1)])
            assert (await (await producer.send("payments", b"third"))).offset == 0
            async with Producer(server) as another:
                assert (await (await another.send("orders", b"fourth"))).offset == 2
    assert not running_tasks()
