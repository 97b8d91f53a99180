"""A committer that gives up nothing: it finds the coordinator and commits, and asks again at once after every error."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.groups.group_servers import commit, committed
from benchmarks.harness.cluster_servers import Member
from benchmarks.harness.coordinators import KeyType, coordinator_of
from benchmarks.harness.member_wires import MemberWires
from benchmarks.harness.readback import LogDiffers
from benchmarks.load.wire import repeat_until_answered


@dataclass(slots=True)
class Committer(MemberWires):
    """Commits one offset after the other of one group."""

    topic: str
    group: str
    offset: int = 0

    def commit(self, members: Mapping[int, Member]) -> None:
        """Returns when the next offset is acknowledged by one of these brokers. Raises TimeoutError."""
        self.offset += 1
        self.insist(
            members,
            lambda wire: coordinator_of(wire, self.group, KeyType.GROUP),
            lambda wire: commit(wire, self.group, self.topic, {0: self.offset}),
            f"{self.group} commits nothing",
        )

    def compare(self, members: Mapping[int, Member]) -> None:
        """Raises LogDiffers unless what was acknowledged last is committed. Raises KafkaError, OSError."""

        def ask() -> int:
            coordinator = coordinator_of(self.to(next(iter(members.values()))), self.group, KeyType.GROUP)
            return committed(self.to(members[coordinator]), self.group, self.topic, [0])[0]

        if (found := repeat_until_answered(ask)) != self.offset:
            raise LogDiffers(f"{self.group} has {found} committed, and {self.offset} was acknowledged")
