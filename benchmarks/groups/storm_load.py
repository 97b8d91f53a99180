"""The generator of join storms, a process of its own: `python -m benchmarks.groups.storm_load LOAD HOST:PORT`.

LOAD is a `StormLoad` in JSON. The members of all groups find their coordinator and join at once, each on a connection
of its own, and the seconds until all groups are stable are printed. Then a line of standard input is waited for, all
connect again and join once more, as the members that they are, and the seconds of that are printed.
"""

import json
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field

from benchmarks.groups.classic_member import until_stable
from benchmarks.groups.rebalance_load import Conversing
from benchmarks.groups.stability import MemberSteps, Stability
from benchmarks.host.machine import REPOSITORY
from benchmarks.load.generator import connected, readable
from benchmarks.load.replies import LoadFailed
from odradek.broker.disk.descriptor_limits import raise_descriptor_limit
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest

FIND = 4


@dataclass(frozen=True, slots=True)
class StormLoad:
    """So many classic groups, whose names begin with `prefix`, with so many members each that share a topic."""

    prefix: str
    topic: str
    groups: int
    members: int
    partitions: int


@dataclass(slots=True)
class StormMember:
    """One member, over all storms."""

    number: int
    """In its group."""
    group: str
    member_id: str = field(default="")

    def steps(self, topic: str, stability: Stability) -> MemberSteps:
        """From finding the coordinator until the group is stable. Raises KafkaError."""
        while (yield FindCoordinatorRequest(coordinator_keys=[self.group]), FIND).coordinators[0].error_code:
            pass
        self.member_id = yield from until_stable(self.number, self.group, topic, stability, self.member_id)


def storm(members: Sequence[StormMember], load: StormLoad, address: str) -> float:
    """Seconds until all groups are stable. Raises KafkaError, LoadFailed, OSError."""
    stabilities = {each.group: Stability(load.members, load.partitions) for each in members}
    with ExitStack() as stack:
        conversing = [
            Conversing(stack.enter_context(connected(address)), each.steps(load.topic, stabilities[each.group]))
            for each in members
        ]
        began = time.perf_counter()
        for each in conversing:
            each.begin()
        for each in readable(conversing):
            each.receive()
        return time.perf_counter() - began


class Storms:
    """The generator, seen from the one who runs it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def seconds(self) -> float:
        """Of the storm that is under way. Raises LoadFailed."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None
            raise LoadFailed(self._process.stderr.read().strip())
        return float(line)

    def again(self) -> float:
        """Of the next storm. Raises LoadFailed."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.seconds()


@contextmanager
def running_storms(address: str, load: StormLoad) -> Generator[Storms]:
    """The first one has begun."""
    command = [sys.executable, "-m", "benchmarks.groups.storm_load", json.dumps(asdict(load)), address]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield Storms(process)
        finally:
            process.kill()


def main(text: str, address: str) -> int:
    load = StormLoad(**json.loads(text))
    raise_descriptor_limit()
    members = [
        StormMember(number, f"{load.prefix}-{group}") for group in range(load.groups) for number in range(load.members)
    ]
    try:
        while True:
            sys.stdout.write(f"{storm(members, load, address)}\n")
            sys.stdout.flush()
            if not sys.stdin.readline():
                return 0
    except (LoadFailed, KafkaError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
