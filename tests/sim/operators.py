"""What operators do to a cluster, each at a machine of their own: they move replicas, and decide what nobody else may.

    operators = Operators(world, brokers.bootstrap)
    operators.reassign("orders", 0, [2, 3, 1])
    operators.prefer("orders", 0)

They try once, and go home. What came of it the metadata store shows.
"""

from collections.abc import Awaitable, Callable, Sequence

from client.admin.admin import Admin
from client.admin.replication import ElectionType
from client.client_error import ClientError
from client.topic_partition import TopicPartition
from tests.sim.machine import Main, Running
from tests.sim.workload import CLIENT_SETTINGS
from tests.sim.world import World

TIMEOUT_MS = 3_000


class Operators:
    """See the module."""

    def __init__(self, world: World, bootstrap: Sequence[str]) -> None:
        self.world = world
        self.bootstrap = list(bootstrap)
        self._count = 0

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> None:
        """The partition is to have these replicas, the first of which had better lead."""

        async def ask(admin: Admin) -> None:
            wanted = {TopicPartition(topic, partition): list(replicas)}
            await admin.alter_partition_reassignments(wanted, timeout_ms=TIMEOUT_MS)

        self._begin(f"reassigns {topic}-{partition} to {list(replicas)}", ask)

    def prefer(self, topic: str, partition: int) -> None:
        """The first of its replicas is to lead."""

        async def ask(admin: Admin) -> None:
            await admin.elect_leaders([TopicPartition(topic, partition)], timeout_ms=TIMEOUT_MS)

        self._begin(f"prefers the first of {topic}-{partition}", ask)

    async def elect_uncleanly(self, running: Running, partitions: Sequence[tuple[str, int]]) -> None:
        """Whoever is there is to lead, whatever it may lack."""

        async def ask(admin: Admin) -> None:
            wanted = [TopicPartition(*each) for each in partitions]
            await admin.elect_leaders(wanted, ElectionType.UNCLEAN, timeout_ms=TIMEOUT_MS)

        await self._ask(running, f"elects uncleanly {list(partitions)}", ask)

    def _begin(self, what: str, ask: Callable[[Admin], Awaitable[None]]) -> None:
        self._count += 1
        self.world.machine(f"operator{self._count}").start(self._main(what, ask))

    def _main(self, what: str, ask: Callable[[Admin], Awaitable[None]]) -> Main:
        async def main(running: Running) -> None:
            await self._ask(running, what, ask)

        return main

    async def _ask(self, running: Running, what: str, ask: Callable[[Admin], Awaitable[None]]) -> None:
        environment, trace = running.environment, self.world.trace
        trace.note("#", "operator", what)
        admin = Admin(self.bootstrap, client_id="operator", environment=lambda: environment, **CLIENT_SETTINGS)
        try:
            async with admin:
                await ask(admin)
        except ClientError as error:
            trace.note("#", "operator", "fails", type(error).__name__)
