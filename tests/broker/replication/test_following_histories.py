"""Three replicas under leaders that come and go: their logs become equal byte for byte, and nothing goes in vain.

Real logs, real answers, no network: one step is a fetch, answered and applied. Leaders are elected from the in-sync
set, or uncleanly from anybody. Replicas stop and start with the log that they had. After each cut the follower still
has all that its leader has, too; what was committed stays where the set allowed it; at last everything is the same
everywhere.

The scenarios of KIP-101 and KIP-279 are told one by one before that.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.replication.follower_state import Phase
from odradek.broker.replication.following import Following
from odradek.protocol.batches.batch import iterate_batches
from tests.broker.log.logs import T0, append, batch, open_log, read_all
from tests.broker.replication.replicas_world import FollowingReplica, Led

CONFIG = LogConfig(segment_bytes=350, index_interval_bytes=80)
STEPS_MAX = 60


def batches_of(log: Log) -> list[bytes]:
    data = read_all(log)
    return [data[position : position + header.size_bytes] for position, header in iterate_batches(data)]


def everything_in(log: Log) -> dict[int, bytes]:
    """The batches by base offset, with those before the log's start."""
    found: dict[int, bytes] = {}
    for segment in log.segments:
        data = bytes(segment.file.pread(segment.size_bytes, 0))
        for position, header in iterate_batches(data):
            found[header.base_offset] = data[position : position + header.size_bytes]
    return found


def common_end(one: Log, other: Log) -> int:
    """Where the logs part: the end of the last batch up to which they are equal."""
    end = min(one.log_start_offset, other.log_start_offset)
    for mine, theirs in zip(batches_of(one), batches_of(other), strict=False):
        if mine != theirs:
            break
        ((_, header),) = iterate_batches(mine)
        end = header.last_offset + 1
    return end


def fetch_once(follower: FollowingReplica, leader: Led, size_bytes_max: int = 1 << 20) -> None:
    """One fetch, answered and applied. What is cut off is nothing that the leader has."""
    following = Following(follower, 1000.0)
    asked = following.position
    before = common_end(follower.log, leader.log)
    answer = leader.read(follower.index, asked, size_bytes_max)
    following.take(answer, asked, 0.0, 0)
    if following.state.phase is Phase.COMPARING:
        following.compare((leader.log.log_start_offset, leader.log.log_end_offset), asked, 0.0)
    assert following.state.phase is Phase.FETCHING, following.state.phase
    assert follower.log.log_end_offset >= before, "something was cut off that the leader has"


def converge(follower: FollowingReplica, leader: Led) -> int:
    """Fetches until the logs are equal; how many fetches that took."""
    for count in range(STEPS_MAX):
        if (
            follower.log.log_end_offset == leader.log.log_end_offset
            and follower.log.epochs.latest <= leader.log.epochs.latest
            and read_all(follower.log) == read_all(leader.log)
        ):
            return count
        fetch_once(follower, leader)
    raise AssertionError(f"not equal after {STEPS_MAX} fetches")


# -- told one by one --------------------------------------------------------------------------------------------------


def log_of(*epochs: tuple[int, int]) -> Log:
    """A log with so many records of each epoch, one in a batch; the same record always has the same bytes."""
    log = open_log(MemoryDisk())
    for leader_epoch, count in epochs:
        for _ in range(count):
            append(log, batch(T0 + log.log_end_offset, value=b"%d" % leader_epoch), leader_epoch)
    return log


@pytest.mark.parametrize(
    ("follower", "leader", "fetches"),
    [
        ([(0, 5)], [(0, 5)], 0),
        ([(0, 3)], [(0, 5)], 1),
        ([(0, 5)], [(0, 3)], 1),  # the leader never had the last two
        ([(0, 3), (1, 2)], [(0, 5)], 2),  # KIP-101, scenario 1: the follower led in between
        ([(0, 3), (1, 2)], [(0, 3), (2, 2)], 2),  # KIP-101, scenario 2: both have appended
        ([(0, 3), (1, 2), (3, 4)], [(0, 3), (2, 2), (4, 1)], 3),
        ([(0, 2), (2, 3)], [(0, 2), (1, 4), (3, 1)], 2),  # KIP-279: neither has the epochs of the other
        ([(0, 1), (2, 2), (4, 2), (6, 2)], [(0, 1), (1, 2), (3, 2), (5, 2), (7, 1)], 4),
        ([(1, 4)], [(0, 2), (2, 1)], 2),  # nothing in common
        ([(5, 3)], [], 1),
    ],
)
def test_logs_that_part_are_made_equal(
    follower: list[tuple[int, int]], leader: list[tuple[int, int]], fetches: int
) -> None:
    led = Led(log_of(*leader), 9)
    replica = FollowingReplica(log_of(*follower), 9)
    assert converge(replica, led) == fetches
    assert replica.log.epochs.entries == led.log.epochs.entries


def test_an_epoch_without_records_takes_nothing_with_it() -> None:
    """Whoever led and appended nothing leaves no trace; its successor's followers lose nothing."""
    log = log_of((0, 4))
    log.begin_epoch(3)
    replica = FollowingReplica(log, 4)
    assert converge(replica, Led(log_of((0, 4)), 4)) == 0
    assert replica.truncations == []


def test_never_by_the_high_watermark() -> None:
    """KIP-101, scenario 1: a follower whose high watermark is behind keeps what its leader has."""
    replica = FollowingReplica(log_of((0, 5)), 1)
    replica.high_watermark = 2
    converge(replica, Led(log_of((0, 5), (1, 1)), 1))
    assert replica.truncations == []


epochs = st.lists(st.integers(0, 4), min_size=0, max_size=6)


def parting(shared: list[int], mine: list[int], theirs: list[int]) -> tuple[FollowingReplica, Led]:
    """So many records of each epoch. Epochs are given out once: after what is shared, the follower has the odd ones and
    the leader the even ones."""
    common = list(enumerate(shared))
    next_epoch = 2 * len(common)
    own = [(next_epoch + 2 * number + 1, count) for number, count in enumerate(mine)]
    other = [(next_epoch + 2 * number, count) for number, count in enumerate(theirs)]
    return FollowingReplica(log_of(*common, *own), 99), Led(log_of(*common, *other), 99)


@settings(max_examples=60)
@given(shared=epochs, mine=epochs, theirs=epochs, size=st.sampled_from([1, 200, 1 << 20]))
def test_any_two_histories_are_made_equal(shared: list[int], mine: list[int], theirs: list[int], size: int) -> None:
    replica, led = parting(shared, mine, theirs)
    for _ in range(STEPS_MAX * 4):
        fetch_once(replica, led, size)
    assert read_all(replica.log) == read_all(led.log)
    assert replica.log.epochs.entries == led.log.epochs.entries


@settings(max_examples=60)
@given(shared=epochs, mine=epochs, theirs=epochs, deleted=st.integers(0, 16))
def test_nothing_stays_that_was_never_the_leaders_whatever_was_deleted_there(
    shared: list[int], mine: list[int], theirs: list[int], deleted: int
) -> None:
    """Not before its log's start either: a start of the log that is lost would show it, and what the producers are
    known by would answer for it."""
    replica, led = parting(shared, mine, theirs)
    led.log.advance_log_start(min(deleted, led.log.log_end_offset))
    for _ in range(STEPS_MAX):
        fetch_once(replica, led)
    assert read_all(replica.log) == read_all(led.log)
    kept = everything_in(led.log)
    assert everything_in(replica.log).items() <= kept.items()


# -- a cluster --------------------------------------------------------------------------------------------------------


@dataclass
class Machine:
    """A broker with its disk. What `positions` says of another one was claimed by that one's fetches."""

    disk: MemoryDisk = field(default_factory=MemoryDisk)
    log: Log = field(init=False)
    is_up: bool = True

    def __post_init__(self) -> None:
        self.log = open_log(self.disk, CONFIG)


class Cluster(RuleBasedStateMachine):
    """One partition on three brokers, whose in-sync set the test keeps as a controller and a leader do."""

    def __init__(self) -> None:
        super().__init__()
        self.machines = [Machine() for _ in range(3)]
        self.leader = 0
        self.epoch = 0
        self.isr = [0, 1, 2]
        self.positions: dict[int, int] = {}
        self.high_watermark = 0
        self.committed: list[bytes] = []
        """All batches below the high watermark, in order."""
        self.number = 0

    @initialize()
    def begin(self) -> None:
        self._elect(0)

    @property
    def led(self) -> Led | None:
        if not self.machines[self.leader].is_up:
            return None
        led = Led(self.machines[self.leader].log, self.epoch)
        led.high_watermark = self.high_watermark
        return led

    def _elect(self, broker: int) -> None:
        self.leader, self.epoch, self.positions = broker, self.epoch + 1, {}
        self.machines[broker].log.begin_epoch(self.epoch)

    # -- what happens ---------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 3))
    @precondition(lambda self: self.led is not None)
    def produce(self, count: int) -> None:
        for _ in range(count):
            self.number += 1
            append(self.machines[self.leader].log, batch(T0 + self.number, value=b"%d" % self.number), self.epoch)
        self._commit()

    @rule(broker=st.integers(0, 2), size_bytes_max=st.sampled_from([1, 200, 1 << 20]))
    @precondition(lambda self: self.led is not None)
    def fetch(self, broker: int, size_bytes_max: int) -> None:
        led = self.led
        if led is None or broker == self.leader or not self.machines[broker].is_up:
            return
        replica = FollowingReplica(self.machines[broker].log, self.epoch)
        if common_end(replica.log, led.log) >= replica.log.log_end_offset:
            self.positions[broker] = max(self.positions.get(broker, 0), replica.log.log_end_offset)
        fetch_once(replica, led, size_bytes_max)
        if broker not in self.isr and self.positions.get(broker, -1) >= led.log.log_end_offset:
            self.isr.append(broker)
        self._commit()

    def _commit(self) -> None:
        """The high watermark moves as far as the whole in-sync set has fetched in this epoch."""
        log = self.machines[self.leader].log
        ends = [log.log_end_offset if one == self.leader else self.positions.get(one, 0) for one in self.isr]
        self.high_watermark = max(self.high_watermark, min(ends))
        below = [one for one in batches_of(log) if next(iterate_batches(one))[1].last_offset < self.high_watermark]
        assert below[: len(self.committed)] == self.committed, "committed, and not at the leader"
        self.committed = below

    @rule(broker=st.integers(0, 2))
    def leave_in_sync_set(self, broker: int) -> None:
        if broker in self.isr and broker != self.leader:
            self.isr.remove(broker)
            if self.led is not None:
                self._commit()

    @rule(broker=st.integers(0, 2))
    def stop(self, broker: int) -> None:
        """It is killed; what it wrote is there when it starts again."""
        self.machines[broker].is_up = False
        if len(self.isr) > 1 and broker in self.isr and broker != self.leader:
            self.isr.remove(broker)

    @rule(broker=st.integers(0, 2))
    def start(self, broker: int) -> None:
        machine = self.machines[broker]
        if not machine.is_up:
            machine.log.close_without_flush()
            machine.log = open_log(machine.disk, CONFIG, log_start_offset=0)
            machine.is_up = True
            self.positions.pop(broker, None)
            if broker == self.leader:
                self._elect(broker)

    @rule(broker=st.integers(0, 2))
    def elect(self, broker: int) -> None:
        """Another member of the in-sync set leads; the old leader, if it is gone, leaves the set."""
        if broker == self.leader or broker not in self.isr or not self.machines[broker].is_up:
            return
        if not self.machines[self.leader].is_up:
            self.isr.remove(self.leader)
        self._elect(broker)

    @rule(broker=st.integers(0, 2))
    def elect_unclean(self, broker: int) -> None:
        """Nobody of the set is there: anybody leads, and what it lacks is lost."""
        if not self.machines[broker].is_up or any(self.machines[one].is_up for one in self.isr):
            return
        self.isr, self.committed = [broker], []
        self.high_watermark = min(self.high_watermark, self.machines[broker].log.log_end_offset)
        self._elect(broker)
        self._commit()

    # -- what must be true ----------------------------------------------------------------------------------------

    @invariant()
    def committed_is_in_every_log_of_the_set(self) -> None:
        for broker in self.isr:
            if self.machines[broker].is_up:
                assert batches_of(self.machines[broker].log)[: len(self.committed)] == self.committed, broker

    def teardown(self) -> None:
        for broker in range(3):
            self.start(broker)
        led = self.led
        assert led is not None
        note(f"leader {self.leader} in epoch {self.epoch}, in sync {self.isr}")
        for broker, machine in enumerate(self.machines):
            if broker != self.leader:
                converge(FollowingReplica(machine.log, self.epoch), led)
                assert read_all(machine.log) == read_all(led.log)
                assert machine.log.epochs.entries == led.log.epochs.entries
        assert batches_of(led.log)[: len(self.committed)] == self.committed


Cluster.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestCluster = Cluster.TestCase
