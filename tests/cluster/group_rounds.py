"""Rounds with a consumer group: something happens to its coordinator while members of five libraries come and go.

    with GroupStory("SIGKILL, coordinator", cluster) as story:
        story.rounds("SIGKILL, coordinator", killed)            # group_faults.py

Producers write to a topic of twelve partitions, and one group reads it: kafka-python, Java's consumer and ours commit
and wait, aiokafka and one consumer of librdkafka commit in the background, and another one of librdkafka is static. In
each round one of them goes and comes again. After it each partition must have one owner again, nobody may wait for an
assignment, and what was acknowledged by then must be processed and committed. Beside it a register of one offset is
kept (offsets_register.py).

In the end nobody sends any more, members must come to the end, and each broker in turn coordinates the group and must
say that the ends of the logs are committed; so must who follows a coordinator that is killed. Then the checker judges
what all were told (odradek/testing/sim/checking/check_groups.py).
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from types import TracebackType
from typing import Final, Self

from odradek.testing.sim.checking.checker import check
from odradek.testing.sim.checking.group_history import CommitAnswered
from odradek.testing.sim.checking.history import Acknowledged, History, Record
from tests.cluster.client_session import Job, now_ms
from tests.cluster.clients import Client, Clients
from tests.cluster.coordinators import (
    coordinator_of,
    create_offsets_topic,
    moved,
    offsets_at,
    wait_until_offsets_are_whole,
)
from tests.cluster.gaps import FiguresByKind
from tests.cluster.group_faults import GroupFault
from tests.cluster.members import GROUP, STATIC, Members
from tests.cluster.offsets_register import register_beside
from tests.cluster.raised_epochs import excused
from tests.cluster.real_cluster import NODES, TOPIC, RealCluster, create_topic, is_whole
from tests.cluster.rounds import ROUNDS, SEED, check_logs, doubled_in, everything, history_of
from tests.compat.watermarks import log_ends

GROUP_TOPIC: Final = "shared"
GROUP_ASSIGNMENTS: Final = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 4
PRODUCERS: Final = ("kafka-python", "librdkafka")
GROUP_OPTIONS: Final = ("--set", "group.initial.rebalance.delay.ms=500")


class GroupStory:
    """A cluster, producers, members, and the rounds."""

    def __init__(self, what: str, cluster: RealCluster, *, bootstrap: str | None = None) -> None:
        """`bootstrap`: where clients find it, if not where its brokers listen."""
        self.cluster = cluster
        self.rng = random.Random(f"{SEED} {what}")
        self.what = what
        self.figures = FiguresByKind()
        partitions, where = len(GROUP_ASSIGNMENTS), bootstrap or cluster.bootstrap
        self.clients = Clients(cluster.processes, where, GROUP_TOPIC, partitions, kinds=PRODUCERS, burst=5)
        self.members = Members(cluster.processes, where, GROUP_TOPIC, partitions)
        file = str(cluster.processes.directory / "register.history")
        job = Job("register", "register", where, TOPIC, 1, file, group=register_beside(GROUP))
        self.register = cluster.processes.add(Client(job, cluster.processes.log_file("register")))

    def __enter__(self) -> Self:
        print(f"\ngroup: {self.what}: PROCESS_SEED={SEED}")  # noqa: T201 - for the report
        create_topic(self.cluster, GROUP_TOPIC, assignments=GROUP_ASSIGNMENTS)
        create_offsets_topic(self.cluster, GROUP)
        self.clients.start()
        self.members.start()
        self.register.start()
        self.clients.wait_for_progress(50)
        self.members.wait_until_settled()
        return self

    # -- a round ------------------------------------------------------------------------------------------------------

    def rounds(self, what: str, fault: GroupFault) -> None:
        """As many of this kind as ROUNDS says."""
        self.figures.measure(
            f"group: {what}", ROUNDS, partial(self._round, fault), lambda: self.clients.acknowledged_count
        )

    def _round(self, fault: GroupFault) -> float:
        """The longest gap between two commits of it, in ms."""
        from_ms = now_ms()
        before, during, after = self.rng.choice(self._moves())
        before()
        with fault(self.cluster, self.rng):
            during()
        self._wait_until_whole()
        self.cluster.happened("heal", "")
        after()
        for name in self.members.names:
            self.members.come(name)
        self.clients.wait_for_progress(50)
        acknowledged = self._acknowledged_ends()
        self.members.wait_until_settled()
        self.members.wait_until_committed(acknowledged)
        return longest_commit_gap_ms(self.members.history(), from_ms, now_ms())

    def _moves(self) -> Sequence[tuple[Callable[[], None], Callable[[], None], Callable[[], None]]]:
        """Who goes and comes before, during, and after the fault."""
        members = self.members
        name = self.rng.choice([each for each in members.names if each != STATIC])

        def nothing() -> None: ...

        def kill() -> None:
            members.kill(name)

        def leave() -> None:
            members.leave(name)

        def come() -> None:
            members.come(name)

        def replace_static() -> None:
            members.kill(STATIC)
            members.come(STATIC)

        return (
            (leave, come, nothing),
            (nothing, kill, come),
            (kill, come, nothing),
            (nothing, replace_static, nothing),
            (nothing, nothing, leave),
        )

    def _wait_until_whole(self) -> None:
        self.cluster.wait_until_whole()
        self.cluster.wait_until(lambda: is_whole(self.cluster.answers(GROUP_TOPIC)))
        wait_until_offsets_are_whole(self.cluster)

    def _acknowledged_ends(self) -> dict[int, int]:
        """Of each partition, behind the last record that was acknowledged, as far as it was looked at."""
        ends: dict[int, int] = {}
        for client in self.clients.producers:
            for record in client.records:
                if isinstance(record, Acknowledged):
                    ends[record.partition] = max(record.offset + 1, ends.get(record.partition, 0))
        return ends

    # -- the end ------------------------------------------------------------------------------------------------------

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._end()
            return
        for member in (*self.members.all, self.register):
            member.look()
        self.clients.look()  # last: what members have processed is sent before
        history = sorted((*self._told(), *self.cluster.notes), key=lambda each: each.at_ms)
        self._write_history(history)
        if error is not None:
            error.add_note(f"judged as far as it is known: {check(history)}")

    def _end(self) -> None:
        """Raises AssertionError for whatever was promised and not kept."""
        self.clients.stop()
        self.clients.look()
        ends = log_ends(self.cluster.bootstrap, GROUP_TOPIC, range(len(GROUP_ASSIGNMENTS)))
        self.members.wait_until_committed(ends)
        self._check_offsets(ends)
        self.members.stop()
        self.members.look()
        self.register.stop()
        self.register.look()
        read = everything(self.cluster.bootstrap, GROUP_TOPIC, [0] * len(GROUP_ASSIGNMENTS))
        history = history_of(self.clients, [*self.members.history(), *self.register.records, *self.cluster.notes], read)
        self._write_history(history)
        verdict = check(history)
        if not verdict.is_content:
            verdict = excused(verdict, doubled_in(self.cluster, GROUP_TOPIC, len(GROUP_ASSIGNMENTS)))
        self.figures.report(len(verdict.findings))
        print(f"excused: {verdict.counts()}; came again: {dict(self.members.came_again)}")  # noqa: T201 - for the report
        verdict.check()
        assert self.clients.failures() == [], "a send failed, in the time that its client gives it"
        check_logs(self.cluster.processes.directory)

    def _check_offsets(self, ends: dict[int, int]) -> None:
        """All brokers in turn coordinate the group, and then the one that follows a coordinator that was killed."""
        for node in self.rng.sample(NODES, len(NODES)):
            coordinator = moved(self.cluster, GROUP, node)
            self._check_offsets_at(ends, f"broker {node}", offsets_at(coordinator, *self._wanted))
        killed = coordinator_of(self.cluster, GROUP)
        self.cluster.happened("process crash", killed.name, "the last coordinator")
        killed.kill()
        next_one = coordinator_of(self.cluster, GROUP)
        self._check_offsets_at(ends, f"after {killed.name}, {next_one.name}", offsets_at(next_one, *self._wanted))
        self.cluster.happened("start", killed.name)
        killed.start()
        self._wait_until_whole()
        self.members.wait_until_settled()

    @property
    def _wanted(self) -> tuple[str, str, int]:
        return GROUP, GROUP_TOPIC, len(GROUP_ASSIGNMENTS)

    @staticmethod
    def _check_offsets_at(ends: dict[int, int], who: str, offsets: dict[int, int]) -> None:
        other = {each: (offsets[each], end) for each, end in ends.items() if offsets[each] != end}
        assert not other, f"{who} coordinates, and says other offsets than the logs end with: {other}"

    def _told(self) -> list[Record]:
        return [*self.clients.history(), *self.members.history(), *self.register.records]

    def _write_history(self, records: Sequence[Record]) -> None:
        file = self.cluster.processes.directory / "history"
        file.write_text(History(sorted(records, key=lambda each: each.at_ms)).to_json())


def longest_commit_gap_ms(records: Sequence[Record], from_ms: float, to_ms: float) -> float:
    """Between two acknowledged commits of whatever member, not both before or both after this time. 0: none."""
    moments = [each.at_ms for each in records if isinstance(each, CommitAnswered) and not each.error]
    gaps = [after - before for before, after in pairwise(moments) if after >= from_ms and before <= to_ms]
    return max(gaps, default=0.0)
