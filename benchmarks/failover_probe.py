"""A producer that gives up nothing: single records, acks=all, to whoever leads, asked again at once after every error.

A client library waits between two attempts, for 100 ms or more; this one measures the cluster, so it pauses for two
milliseconds. It keeps in mind which value was acknowledged at which offset of which partition, and finds each again.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.harness.cluster_servers import Member
from benchmarks.harness.readback import LogDiffers, batches_in
from benchmarks.harness.replicated_topics import states_of
from benchmarks.load.wire import LATEST, Wire, offsets_of, produce_record, repeat_until_answered
from odradek.protocol.batches.records import iterate_records
from odradek.protocol.errors import KafkaError

TIMEOUT_S = 60.0
RETRY_S = 0.002


class Acknowledged(NamedTuple):
    partition: int
    offset: int
    value: bytes


@dataclass(slots=True)
class Probe:
    """Writes to one topic. Connections stay until they fail, or the block ends."""

    topic: str
    acknowledged: list[Acknowledged] = field(default_factory=list[Acknowledged])
    _wires: dict[int, Wire] = field(default_factory=dict[int, Wire])
    _attempts: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node_id in list(self._wires):
            self._drop(node_id)

    def connect(self, members: Mapping[int, Member]) -> None:
        """Has a connection to each of them, and to nobody else. Raises OSError."""
        for node_id in [node_id for node_id in self._wires if node_id not in members]:
            self._drop(node_id)
        for member in members.values():
            self._wire(member)

    def put(self, members: Mapping[int, Member], partition: int) -> None:
        """Returns when a record is acknowledged by one of these brokers. Raises TimeoutError."""
        deadline = time.monotonic() + TIMEOUT_S
        trouble: Exception = TimeoutError("nobody leads")
        while time.monotonic() < deadline:
            for member in members.values():
                try:
                    leader = states_of(self._wire(member), self.topic)[partition].leader
                except (OSError, KafkaError) as error:
                    self._drop(member.node_id)
                    trouble = error
                    continue
                if leader in members:
                    try:
                        self._produce(self._wire(members[leader]), partition)
                        return
                    except OSError as error:
                        self._drop(leader)
                        trouble = error
                    except KafkaError as error:
                        trouble = error
            time.sleep(RETRY_S)  # between two rounds, not instead of them
        raise TimeoutError(f"{self.topic}-{partition} acknowledges nothing for {TIMEOUT_S} s: {trouble}")

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
        leader = states_of(self._wire(next(iter(members.values()))), self.topic)[partition].leader
        return values_in(self._wire(members[leader]), self.topic, partition)

    def _wire(self, member: Member) -> Wire:
        if (wire := self._wires.get(member.node_id)) is None:
            wire = self._wires[member.node_id] = member.wire()
        return wire

    def _drop(self, node_id: int) -> None:
        if (wire := self._wires.pop(node_id, None)) is not None:
            wire.close()


def values_in(wire: Wire, topic: str, partition: int) -> dict[int, bytes | None]:
    """The values of a partition by their offsets, from its leader. Raises LogDiffers, KafkaError, OSError."""
    (end,) = offsets_of(wire, topic, LATEST, [partition])
    return {
        record.offset: record.value
        for _header, batch in batches_in(wire, topic, partition, end)
        for record in iterate_records(batch)
    }
