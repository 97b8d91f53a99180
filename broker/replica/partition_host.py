"""What all partitions of one broker are given alike."""

from collections.abc import Callable
from dataclasses import dataclass

from odradek.broker.replica.syncs import Syncs
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks


@dataclass(frozen=True, slots=True)
class PartitionHost:
    """One broker, as its partitions see it."""

    node_id: int
    environment: Environment
    tasks: Tasks
    syncs: Syncs
    replica_lag_ms_max: float
    require_lease: Callable[[], None]
    """Raises KafkaError where this broker may have lost its place in the cluster: what no other replica has may neither
    be acknowledged then nor read (membership/registration.py)."""
    require_unfenced: Callable[[], None]
    """The same, and where a controller may have given its partitions to others before its lease ends."""

    @classmethod
    def of(
        cls,
        node_id: int,
        environment: Environment,
        tasks: Tasks,
        replica_lag_ms_max: float,
        require_lease: Callable[[], None],
        require_unfenced: Callable[[], None],
    ) -> "PartitionHost":
        """With syncs of its own."""
        syncs = Syncs(environment, tasks)
        return cls(node_id, environment, tasks, syncs, replica_lag_ms_max, require_lease, require_unfenced)
