"""A producer that gives up nothing: single records, acks=all, to whoever leads, asked again at once after every error.

It keeps in mind which value was acknowledged at which offset of which partition, and finds each again.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from benchmarks.harness.cluster_servers import Member
from benchmarks.harness.member_wires import MemberWires
from benchmarks.harness.readback import LogDiffers, batches_in
from benchmarks.harness.replicated_topics import states_of
from benchmarks.load.wire import LATEST, Wire, offsets_of, produce_record, repeat_until_answered
from odradek.protocol.batches.records import iterate_records


class Acknowledged(NamedTuple):
    partition: int
    offset: int
    value: bytes


@dataclass(slots=True)
class Probe(MemberWires):
    """Writes to one topic."""

    topic: str
    acknowledged: list[Acknowledged] = field(default_factory=list[Acknowledged])
    _attempts: int = 0

    def put(self, members: Mapping[int, Member], partition: int) -> None:
        """Returns when a record is acknowledged by one of these brokers. Raises TimeoutError."""
        self.insist(
            members,
            lambda wire: states_of(wire, self.topic)[partition].leader,
            lambda wire: self._produce(wire, partition),
            f"{self.topic}-{partition} acknowledges nothing",
        )

    def _produce(self, wire: Wire, partition: int) -> None:
        """One attempt. Raises KafkaError, OSError; then it may have been written all the same."""
        self._attempts += 1
        value = f"attempt {self._attempts}".encode()
        offset = produce_record(wire, self.topic, partition, value, time.time_ns() // 1_000_000)
        self.acknowledged.append(Acknowledged(partition, offset, value))

    def compare(self, members: Mapping[int, Member], partitions: int) -> None:
        """Raises LogDiffers unless all that was acknowledged is where it was. Raises KafkaError, OSError."""
        for partition in range(partitions):
            held = repeat_until_answered(partial(self._held, members, partition))
            for acknowledged in self.acknowledged:
                if acknowledged.partition == partition and held.get(acknowledged.offset) != acknowledged.value:
                    found = held.get(acknowledged.offset)
                    raise LogDiffers(f"{self.topic}: {acknowledged} was acknowledged, and {found!r} is there")

    def _held(self, members: Mapping[int, Member], partition: int) -> dict[int, bytes | None]:
        """By their offsets, from who leads now. Raises KafkaError NOT_LEADER_OR_FOLLOWER, and as `values_in`."""
        leader = states_of(self.to(next(iter(members.values()))), self.topic)[partition].leader
        return values_in(self.to(members[leader]), self.topic, partition)


def values_in(wire: Wire, topic: str, partition: int) -> dict[int, bytes | None]:
    """The values of a partition by their offsets, from its leader. Raises LogDiffers, KafkaError, OSError."""
    (end,) = offsets_of(wire, topic, LATEST, [partition])
    return {
        record.offset: record.value
        for _header, batch in batches_in(wire, topic, partition, end)
        for record in iterate_records(batch)
    }
