"""Whom a partition tells what happens to it, and asks what it does not know."""

from collections.abc import Collection
from typing import Any, Protocol, TypeVar

P_contra = TypeVar("P_contra", contravariant=True)


class PartitionListener(Protocol[P_contra]):
    """The broker around its partitions. Called in the loop's thread; nothing of it waits."""

    def leadership_began(self, partition: P_contra) -> None:
        """This broker leads, in another epoch than before."""
        ...

    def leadership_ended(self, partition: P_contra) -> None:
        """This broker does not lead; perhaps it did not before."""
        ...

    def truncated(self, partition: P_contra) -> None:
        """The log was cut: its recovery point is to be written down before anything is appended."""
        ...

    def log_start_followed(self, partition: P_contra, log_start_offset: int) -> None:
        """The leader's log starts there: a follower's is to, once that is written down."""
        ...

    def isr_outdated(self, partition: P_contra) -> None:
        """The in-sync set had better be another one (`Partition.wanted_isr`)."""
        ...

    def may_join(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the cluster lets a broker of this epoch into in-sync sets."""
        ...

    def live_replicas(self, partition: P_contra) -> Collection[int]:
        """The replicas that are usable, on brokers that are there."""
        ...


class Alone:
    """The listener of a partition that is in no cluster: what needs nobody happens at once."""

    def leadership_began(self, partition: Any) -> None: ...

    def leadership_ended(self, partition: Any) -> None: ...

    def truncated(self, partition: Any) -> None: ...

    def log_start_followed(self, partition: Any, log_start_offset: int) -> None:
        partition.log.durable_log_start_offset = log_start_offset
        partition.log.advance_log_start(log_start_offset)

    def isr_outdated(self, partition: Any) -> None: ...

    def may_join(self, broker_id: int, broker_epoch: int) -> bool:
        return True

    def live_replicas(self, partition: Any) -> Collection[int]:
        return ()
