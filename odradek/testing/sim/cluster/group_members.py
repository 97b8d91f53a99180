"""The members of a consumer group in a world: they come, leave, are killed, and come again. And who looks at the group
from outside: `offsets_watcher` asks again and again what is committed, as an operator would.

    members = GroupMembers(world, workload, seats)
    members.start()
    faults.carry_out(members.by_chance(rng, from_s=3, to_s=18, count=4))
    members.come_all()
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from odradek.client.admin.admin import Admin
from odradek.client.errors.client_errors import ClientError
from odradek.client.fetching.list_offsets import LATEST
from odradek.client.topic_partition import TopicPartition
from odradek.testing.sim.checking.group_history import MemberGone, OffsetsRead
from odradek.testing.sim.cluster.fleet import Fleet
from odradek.testing.sim.cluster.group_member import (
    GROUP,
    HEARTBEAT_INTERVAL_MS,
    SESSION_TIMEOUT_MS,
    Member,
    Seat,
)
from odradek.testing.sim.cluster.workload import CLIENT_SETTINGS, RETRY_MS, Workload
from odradek.testing.sim.world.machine import Machine, Main, Running
from odradek.testing.sim.world.world import World

OFFSETS_TOPIC: Final = "__consumer_offsets"
LOOK_MS: Final = 300.0
DARK_MS: Final = 12_000.0
"""So long a member may go on with partitions that it has lost: its session, and a fault meanwhile."""

BROKER_OPTIONS: Final = {
    "offsets.topic.num.partitions": "1",
    "offsets.commit.timeout.ms": "2000",
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_INTERVAL_MS),
    "group.consumer.migration.policy": "bidirectional",
}
"""Times scaled down, for a history is short."""


class GroupMembers(Fleet):
    """All of them, each on a machine of its own: m1, m2, …"""

    def __init__(self, world: World, workload: Workload, seats: Sequence[Seat]) -> None:
        super().__init__(world)
        self.workload = workload
        self._seats = {f"m{number}": seat for number, seat in enumerate(seats, 1)}
        self._lives: Counter[str] = Counter()

    def start(self) -> None:
        for name in self._seats:
            self.add(name)

    def _main(self, machine: Machine) -> Main:
        """Takes part until it is stopped; as another member where its consumer comes to an end."""
        name, world = machine.name, self.world
        rng = world.rng(f"{name} {machine.incarnation}")

        async def main(running: Running) -> None:
            while not running.is_stopping:
                self._lives[name] += 1
                life = Member(
                    self.workload,
                    running,
                    self._seats[name],
                    f"{name}.{self._lives[name]}",
                    rng,
                    has_generation=all(seat.protocol == "classic" for seat in self._seats.values()),
                )
                try:
                    await life.live()
                except ClientError as error:
                    if machine.running is not running:
                        return  # it is killed, and what it had open fails
                    world.trace.note(running.process.name, "ends", f"{type(error).__name__}: {error}")
                    self._gone(name, "left")
                    await running.environment.sleep(RETRY_MS)
                else:
                    self._gone(name, "left")

        return main

    def _killed(self, machine: Machine) -> None:
        self._gone(machine.name, "killed")

    def _gone(self, name: str, why: Literal["left", "killed"]) -> None:
        self.world.history.add(MemberGone(self.world.now_ms, f"{name}.{self._lives[name]}", why))


def offsets_watcher(workload: Workload, *, until_all: bool) -> Main:
    """Asks what the group has committed, until it is stopped, or (`until_all`) until that is all there is."""

    async def main(running: Running) -> None:
        environment = running.environment
        while not running.is_stopping:
            admin = Admin(
                workload.bootstrap, client_id=running.machine.name, environment=lambda: environment, **CLIENT_SETTINGS
            )
            try:
                async with admin:
                    while not running.is_stopping:
                        offsets = await _committed(admin, workload, running)
                        if until_all and await _are_ends(admin, offsets):
                            return
                        await environment.sleep(LOOK_MS)
            except ClientError as error:
                workload.world.trace.note(running.process.name, "asks again", type(error).__name__)
                await environment.sleep(RETRY_MS)

    return main


async def _committed(admin: Admin, workload: Workload, running: Running) -> dict[TopicPartition, int]:
    """Of each partition, -1 where there is none; it goes to the history. Raises ClientError."""
    world, topic = workload.world, workload.topic
    asked_ms = world.now_ms
    found = await admin.group_offsets(GROUP, timeout_ms=3_000)
    partitions = [TopicPartition(topic, index) for index in range(workload.partitions)]
    offsets = {each: found[each].offset if each in found else -1 for each in partitions}
    world.trace.note(running.process.name, "told", *offsets.values())
    told = sorted((each.partition, offset) for each, offset in offsets.items())
    world.history.add(OffsetsRead(world.now_ms, asked_ms, running.machine.name, topic, told))
    return offsets


async def _are_ends(admin: Admin, offsets: Mapping[TopicPartition, int]) -> bool:
    """Whether everything is committed. Raises ClientError."""
    ends = await admin.list_offsets(dict.fromkeys(offsets, LATEST), timeout_ms=3_000)
    return all(offsets[each] == max(end.offset, 0) or end.offset == 0 for each, end in ends.items())
