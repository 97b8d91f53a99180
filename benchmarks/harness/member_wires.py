"""Connections to the brokers of a cluster, for who gives up nothing: they stay until they fail, or the block ends.

A client library waits between two attempts, for 100 ms or more; this measures the cluster, so it pauses for two
milliseconds.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from benchmarks.harness.cluster_servers import Member
from benchmarks.load.wire import Wire
from odradek.protocol.errors import KafkaError

TIMEOUT_S = 60.0
RETRY_S = 0.002


@dataclass(slots=True)
class MemberWires:
    """At most one connection to each broker."""

    _wires: dict[int, Wire] = field(default_factory=dict[int, Wire], init=False)

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
            self.to(member)

    def to(self, member: Member) -> Wire:
        """Raises OSError."""
        if (wire := self._wires.get(member.node_id)) is None:
            wire = self._wires[member.node_id] = member.wire()
        return wire

    def insist(
        self, members: Mapping[int, Member], who_serves: Callable[[Wire], int], ask: Callable[[Wire], object], what: str
    ) -> None:
        """Returns when `ask` has not failed at the broker that one of these brokers names by `who_serves`.

        Both may raise KafkaError and OSError. Raises TimeoutError: `what` is so "for 60.0 s".
        """
        deadline = time.monotonic() + TIMEOUT_S
        trouble: Exception = TimeoutError("nobody serves it")
        while time.monotonic() < deadline:
            for member in members.values():
                try:
                    server = who_serves(self.to(member))
                except (OSError, KafkaError) as error:
                    self._drop(member.node_id)
                    trouble = error
                    continue
                if server in members:
                    try:
                        ask(self.to(members[server]))
                        return
                    except OSError as error:
                        self._drop(server)
                        trouble = error
                    except KafkaError as error:
                        trouble = error
            time.sleep(RETRY_S)  # between two rounds, not instead of them
        raise TimeoutError(f"{what} for {TIMEOUT_S} s: {trouble}")

    def _drop(self, node_id: int) -> None:
        if (wire := self._wires.pop(node_id, None)) is not None:
            wire.close()
