"""A `Cluster` of the client on a scripted cluster in memory, closed at the end, for the tests of all its parts."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from odradek.client.cluster.cluster import Cluster
from odradek.client.cluster.nodes import Opener
from odradek.client.configuration.client_config import ClientConfig
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.runtime.tasks import Tasks
from tests.client.memory_network import MemoryEnvironment
from tests.client.scripted_broker import ScriptedCluster

INIT = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
"""A question that any broker answers."""


class Running:
    """A client's cluster with its changes counted."""

    def __init__(self, cluster: Cluster, tasks: Tasks, environment: MemoryEnvironment) -> None:
        self.cluster = cluster
        self.tasks = tasks
        self.environment = environment
        self.changes = 0
        cluster.subscribe(self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def now_ms(self) -> float:
        return self.environment.monotonic_ms()

    def in_ms(self, delay_ms: float) -> float:
        return self.now_ms() + delay_ms


def made(
    servers: Sequence[str], environment: MemoryEnvironment, *, opener: Opener | None = None, **settings: Any
) -> Running:
    """One that is not started."""
    config = ClientConfig(servers, client_id="test", environment=lambda: environment, **settings)
    tasks = Tasks(environment.loop)
    return Running(Cluster(config, environment, tasks, opener=opener), tasks, environment)


@asynccontextmanager
async def running(
    scripted: ScriptedCluster, *, servers: Sequence[str] | None = None, starts: bool = True, **settings: Any
) -> AsyncGenerator[Running]:
    """One that is started. Sockets that it leaves behind are found by `scripted_cluster`, timers by virtual time."""
    found = made(scripted.bootstrap if servers is None else servers, scripted.environment, **settings)
    try:
        if starts:
            await found.cluster.start()
        yield found
    finally:
        await found.cluster.close()
        assert len(found.tasks) == 0, "tasks are left"


def begun(what: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
    """In the background."""
    return asyncio.ensure_future(what)


async def opened(client: Running, node_id: int) -> None:
    """Waits until there is a connection to the broker."""
    await client.cluster.connection_to(node_id, client.in_ms(10_000))
