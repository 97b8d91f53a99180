"""A follower through a bad day, from a seed: leaders move, stop and forget, connections break, answers come late.

Two brokers lead by turns, and have what all replicas had in common, and some more of it: the follower may be ahead.
What must be true all the time: a fetch that a leader takes for good says only what is so (everything before its offset
is in the follower's log, and is the leader's); what was committed stays in the follower's log. When the day is over,
both logs are equal.
"""

import random

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.log import Log
from odradek.broker.replication.follower_state import FetchPosition
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse, PartitionData
from tests.broker.log.logs import append, open_log, read_all
from tests.broker.replication.fake_leader import PORT, FakeLeader
from tests.broker.replication.fetcher_world import World, data, world
from tests.broker.replication.replicas_world import FollowingReplica, Led

pytestmark = pytest.mark.virtual_time

PARTITIONS = 3
TOPIC = b"o" * 16


def beginning(log: Log, end_offset: int) -> bytes:
    """All batches before an offset."""
    held, end = read_all(log), 0
    for position, header in iterate_batches(held):
        if header.last_offset < end_offset:
            end = position + header.size_bytes
    return held[:end]


class Kept(FollowingReplica):
    """Looks after each cut whether what is committed is still there."""

    committed = 0
    """Everything before it was claimed towards a leader."""

    def truncated(self) -> None:
        super().truncated()
        assert self.log.log_end_offset >= self.committed, "cut off, and committed"


class Watched(Led):
    """Compares what a follower claims with what it has, and commits as much as the third replica has, by chance."""

    def __init__(self, log: Log, leader_epoch: int, replica: Kept, rng: random.Random) -> None:
        super().__init__(log, leader_epoch)
        self.rng = rng
        self.replica = replica

    def read(self, index: int, asked: FetchPosition, size_bytes_max: int = 1 << 20) -> PartitionData:
        answer = super().read(index, asked, size_bytes_max)
        is_present = asked.leader_epoch == self.replica.leader_epoch
        if not answer.error_code and answer.diverging_epoch is None and is_present:
            mine = beginning(self.replica.log, asked.fetch_offset)
            assert mine == beginning(self.log, asked.fetch_offset), "the follower claims what it has not"
            others = self.rng.randint(0, asked.fetch_offset)
            self.high_watermark = self.replica.committed = max(self.high_watermark, others)
        return answer


class Day:
    """What happens, by chance."""

    def __init__(self, it: World, seed: int) -> None:
        self.it = it
        self.rng = random.Random(seed)
        self.epoch = 1
        self.number = 0
        self.leaders: dict[int, int] = {}
        self.replicas: dict[int, Kept] = {}
        self.stopped: FakeLeader | None = None
        for index in range(PARTITIONS):
            replica = self.replicas[index] = it.replicas[index] = Kept(open_log(MemoryDisk()), 1, index)
            it.leader.lead(index, Watched(open_log(MemoryDisk()), 1, replica, self.rng))
            self.leaders[index] = 1
            it.fetchers.follow(replica, 1)

    def leader(self, index: int) -> FakeLeader:
        return self.it.leader if self.leaders[index] == 1 else self.it.other

    def led(self, index: int) -> Led:
        return self.leader(index).led[TOPIC, index]

    def append(self) -> None:
        index = self.rng.randrange(PARTITIONS)
        for _ in range(self.rng.randint(1, 4)):
            self.number += 1
            append(self.led(index).log, data(self.number, self.rng.choice([5, 500])), self.led(index).leader_epoch)
        self.leader(index).wake()

    def move(self) -> None:
        """The other broker leads: with what is committed, and some of the rest. It hears of it early or late."""
        index = self.rng.randrange(PARTITIONS)
        old = self.led(index)
        self.epoch += 1
        log = open_log(MemoryDisk())
        cut = self.rng.randint(old.high_watermark, old.log.log_end_offset)
        log.append_replicated(beginning(old.log, cut), self.epoch, 0)
        replica = self.replicas[index]
        led = Watched(log, self.epoch, replica, self.rng)
        led.high_watermark = old.high_watermark
        self.leader(index).errors.setdefault((TOPIC, index), []).append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.leaders[index] = 3 - self.leaders[index]
        self.leader(index).errors[TOPIC, index] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * self.rng.randint(0, 3)
        self.leader(index).lead(index, led)
        replica.leader_epoch = self.epoch
        self.it.fetchers.follow(replica, self.leaders[index])

    def reset(self) -> None:
        for link in list(self.it.network.links):
            if self.rng.random() < 0.5:
                link.reset()

    def stop_or_start(self) -> None:
        if self.stopped is not None:
            self.stopped.start()
            self.stopped = None
        else:
            self.stopped = self.rng.choice([self.it.leader, self.it.other])
            self.stopped.stop()

    def forget_sessions(self) -> None:
        codes = [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.REQUEST_TIMED_OUT]
        self.it.leader.refusals.append(self.rng.choice(codes))

    def answer_late(self) -> None:
        self.it.leader.delays_ms.append(self.rng.uniform(0, 300))

    def damage(self) -> None:
        def flip(response: FetchResponse) -> None:
            for topic in response.responses:
                for answer in topic.partitions:
                    if answer.records:
                        damaged = bytearray(answer.records)
                        damaged[self.rng.randrange(21, len(damaged))] ^= 1 << self.rng.randrange(8)
                        answer.records = bytes(damaged)

        self.it.leader.edits.append(flip)

    def slow_network(self) -> None:
        for leader in (self.it.leader, self.it.other):
            self.it.network.path(leader.address, PORT).to_client.delay_ms = self.rng.choice([0.2, 5, 40])

    async def live(self, events: int) -> None:
        rare = [self.reset, self.stop_or_start, self.forget_sessions, self.answer_late, self.damage, self.slow_network]
        for _ in range(events):
            await self.it.run(self.rng.choice([0.0, 0.3, 3.0, 30.0, 300.0]))
            self.rng.choice([self.append, self.append, self.append, self.move, self.rng.choice(rare)])()
            self.check()

    def check(self) -> None:
        for index, replica in self.it.replicas.items():
            committed = self.led(index).high_watermark
            assert beginning(replica.log, committed) == beginning(self.led(index).log, committed), "committed, and gone"

    async def heal(self) -> None:
        if self.stopped is not None:
            self.stop_or_start()
        for leader in (self.it.leader, self.it.other):
            leader.errors.clear()
            leader.edits.clear()
            leader.delays_ms.clear()
            leader.refusals.clear()
        await self.it.run(6000)


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happens_the_logs_become_equal(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    max_bytes = random.Random(seed).choice(["1000", "1000000"])
    async with world({"replica.fetch.max.bytes": max_bytes, "replica.socket.timeout.ms": "3000"}) as it:
        day = Day(it, seed)
        await day.live(100)
        await day.heal()
        for index, replica in it.replicas.items():
            assert read_all(replica.log) == read_all(day.led(index).log), index
            assert replica.log.epochs.entries == day.led(index).log.epochs.entries
        assert any(replica.truncations for replica in it.replicas.values())
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
