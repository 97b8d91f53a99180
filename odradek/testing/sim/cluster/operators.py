"""What operators do to a cluster, each request at a machine of its own: they change topics, replicas, options, records.

    operators = Operators(world, brokers.bootstrap)
    asking = operators.delete_records("orders", 0, before=7)
    asking.answer                                             # what came of it, once it did

They try as long as their client does, and go home. The history has what they wanted and what they were told (`Asked`,
`Answered`), for the checker; what came of it the metadata store shows.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigChange, ConfigResource
from odradek.client.admin.replication import ElectionType
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import TopicExists
from odradek.client.topic_partition import TopicPartition
from odradek.testing.sim.checking.history import Answered, Asked, OperatorAction
from odradek.testing.sim.cluster.workload import CLIENT_SETTINGS, RETRY_MS
from odradek.testing.sim.world.machine import Main, Running
from odradek.testing.sim.world.world import World

TIMEOUT_MS: Final = 3_000
ATTEMPTS_MAX: Final = 10
"""So often a topic that was deleted is made anew, and then left to who repairs everything."""

Ask = Callable[[Admin], Awaitable[list[int]]]
"""Makes a request; answers the numbers of its answer."""


@dataclass(slots=True)
class Asking:
    """A request. `answer` is None until there is one."""

    answer: Answered | None = None

    @property
    def is_over(self) -> bool:
        return self.answer is not None

    @property
    def is_done(self) -> bool:
        """The cluster says that the change was made."""
        return self.answer is not None and self.answer.is_done


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is written into the history about a request."""

    action: OperatorAction
    topic: str = ""
    partition: int = -1
    numbers: tuple[int, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


class Operators:
    """See the module."""

    def __init__(self, world: World, bootstrap: Sequence[str]) -> None:
        self.world = world
        self.bootstrap = list(bootstrap)
        self._count = 0
        self._requests = 0

    # -- replicas and leaders --------------------------------------------------------------------------------------

    def reassign(self, topic: str, partition: int, replicas: Sequence[int]) -> Asking:
        """The partition is to have these replicas, the first of which had better lead."""

        async def ask(admin: Admin) -> list[int]:
            wanted = {TopicPartition(topic, partition): list(replicas)}
            await admin.alter_partition_reassignments(wanted, timeout_ms=TIMEOUT_MS)
            return []

        wanted = _Wanted("reassign", topic, partition, tuple(replicas))
        return self._begin(f"reassigns {topic}-{partition} to {list(replicas)}", wanted, ask)

    def cancel(self, topic: str, partition: int) -> Asking:
        """The partition is to keep the replicas that it had before it was reassigned."""

        async def ask(admin: Admin) -> list[int]:
            await admin.alter_partition_reassignments({TopicPartition(topic, partition): None}, timeout_ms=TIMEOUT_MS)
            return []

        wanted = _Wanted("cancel", topic, partition)
        return self._begin(f"cancels what {topic}-{partition} is reassigned to", wanted, ask)

    def prefer(self, topic: str, partition: int) -> Asking:
        """The first of its replicas is to lead."""

        async def ask(admin: Admin) -> list[int]:
            await admin.elect_leaders([TopicPartition(topic, partition)], timeout_ms=TIMEOUT_MS)
            return []

        return self._begin(f"prefers the first of {topic}-{partition}", _Wanted("elect", topic, partition), ask)

    def elect_whoever(self, topic: str, partition: int) -> Asking:
        """Whoever is there is to lead, whatever it may lack."""

        async def ask(admin: Admin) -> list[int]:
            await admin.elect_leaders([TopicPartition(topic, partition)], ElectionType.UNCLEAN, timeout_ms=TIMEOUT_MS)
            return []

        wanted = _Wanted("elect uncleanly", topic, partition)
        return self._begin(f"elects whoever is there for {topic}-{partition}", wanted, ask)

    async def elect_uncleanly(self, running: Running, partitions: Sequence[tuple[str, int]]) -> None:
        """As `elect_whoever`, of several, by somebody who waits for it."""

        async def ask(admin: Admin) -> list[int]:
            wanted = [TopicPartition(*each) for each in partitions]
            await admin.elect_leaders(wanted, ElectionType.UNCLEAN, timeout_ms=TIMEOUT_MS)
            return []

        await self._ask(running, f"elects uncleanly {list(partitions)}", _Wanted("elect"), ask)

    def unregister(self, node_id: int) -> Asking:
        """The cluster is to forget a broker that is not there."""

        async def ask(admin: Admin) -> list[int]:
            await admin.unregister_broker(node_id, timeout_ms=TIMEOUT_MS)
            return []

        return self._begin(f"unregisters broker {node_id}", _Wanted("unregister", numbers=(node_id,)), ask)

    # -- records ---------------------------------------------------------------------------------------------------

    def delete_records(self, topic: str, partition: int, before: int) -> Asking:
        """Before an offset; -1: all that can be read."""

        async def ask(admin: Admin) -> list[int]:
            deleted = await admin.delete_records({TopicPartition(topic, partition): before}, timeout_ms=TIMEOUT_MS)
            return list(deleted.values())

        wanted = _Wanted("delete records", topic, partition, (before,))
        return self._begin(f"deletes the records of {topic}-{partition} before {before}", wanted, ask)

    # -- topics ----------------------------------------------------------------------------------------------------

    def create_topic(self, topic: str, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> Asking:
        what, wanted, ask = _creation(topic, partitions, replication_factor, configs)
        return self._begin(what, wanted, ask)

    def make_anew(
        self, topic: str, partitions: int, replication_factor: int, configs: Mapping[str, str], pause_ms: float
    ) -> Asking:
        """Deletes the topic and then, after a pause, creates one of that name. What is answered is the deletion."""
        asking = Asking()

        async def delete(admin: Admin) -> list[int]:
            await admin.delete_topics([topic], timeout_ms=TIMEOUT_MS)
            return []

        async def main(running: Running) -> None:
            await self._ask(running, f"deletes {topic}", _Wanted("delete topic", topic), delete, asking)
            await running.environment.sleep(pause_ms)
            what, wanted, create = _creation(topic, partitions, replication_factor, configs)
            for _ in range(ATTEMPTS_MAX):
                error = await self._ask(running, what, wanted, create)
                if error is None or isinstance(error, TopicExists):
                    return
                await running.environment.sleep(RETRY_MS)

        self._start(main)
        return asking

    def delete_topic(self, topic: str) -> Asking:
        async def ask(admin: Admin) -> list[int]:
            await admin.delete_topics([topic], timeout_ms=TIMEOUT_MS)
            return []

        return self._begin(f"deletes {topic}", _Wanted("delete topic", topic), ask)

    async def ensure_topic(
        self, running: Running, topic: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
    ) -> None:
        """Creates it, however often it must be tried, by somebody who waits for it."""
        what, wanted, ask = _creation(topic, partitions, replication_factor, configs)
        while (error := await self._ask(running, what, wanted, ask)) is not None:
            if isinstance(error, TopicExists):
                return
            await running.environment.sleep(RETRY_MS)

    def add_partitions(self, topic: str, count: int) -> Asking:
        """The topic is to have so many."""

        async def ask(admin: Admin) -> list[int]:
            await admin.create_partitions({topic: count}, wait_for_leaders=False, timeout_ms=TIMEOUT_MS)
            return []

        return self._begin(f"gives {topic} {count} partitions", _Wanted("add partitions", topic, numbers=(count,)), ask)

    def alter_options(self, topic: str, options: Mapping[str, str]) -> Asking:
        """Of a topic, or with an empty name of all brokers."""
        resource = ConfigResource.topic(topic) if topic else ConfigResource.broker()

        async def ask(admin: Admin) -> list[int]:
            changes = [ConfigChange.set(name, value) for name, value in options.items()]
            await admin.alter_configs({resource: changes}, timeout_ms=TIMEOUT_MS)
            return []

        wanted = _Wanted("alter options", topic, options=tuple(options.items()))
        return self._begin(f"sets {dict(options)} of {topic or 'all brokers'}", wanted, ask)

    # -- asking ----------------------------------------------------------------------------------------------------

    def _begin(self, what: str, wanted: _Wanted, ask: Ask) -> Asking:
        asking = Asking()

        async def main(running: Running) -> None:
            await self._ask(running, what, wanted, ask, asking)

        self._start(main)
        return asking

    def _start(self, main: Main) -> None:
        self._count += 1
        self.world.machine(f"operator{self._count}").start(main)

    async def _ask(
        self, running: Running, what: str, wanted: _Wanted, ask: Ask, asking: Asking | None = None
    ) -> ClientError | None:
        """The error with which it has failed."""
        environment, trace, history = running.environment, self.world.trace, self.world.history
        self._requests += 1
        name = f"{running.machine.name}/{self._requests}"
        trace.note("#", "operator", what)
        history.add(
            Asked(
                self.world.now_ms,
                name,
                wanted.action,
                wanted.topic,
                wanted.partition,
                list(wanted.numbers),
                dict(wanted.options),
            )
        )
        admin = Admin(self.bootstrap, client_id="operator", environment=lambda: environment, **CLIENT_SETTINGS)
        failed: ClientError | None = None
        numbers: list[int] = []
        try:
            async with admin:
                numbers = await ask(admin)
        except ClientError as error:
            failed = error
            trace.note("#", "operator", "fails", type(error).__name__)
        answer = Answered(self.world.now_ms, name, failed is None, numbers=numbers, error=str(failed or ""))
        history.add(answer)
        if asking is not None:
            asking.answer = answer
        return failed


def _creation(
    topic: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
) -> tuple[str, _Wanted, Ask]:
    async def ask(admin: Admin) -> list[int]:
        await admin.create_topic(
            topic, partitions, replication_factor, configs, wait_for_leaders=False, timeout_ms=TIMEOUT_MS
        )
        return []

    wanted = _Wanted("create topic", topic, numbers=(partitions, replication_factor))
    return f"creates {topic} with {partitions} partitions", wanted, ask
