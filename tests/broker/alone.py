"""The roles of partitions at a broker without others, and without a metadata store that anybody writes to."""

from collections.abc import Callable

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_host import PartitionHost
from odradek.broker.replication.isr_writer import IsrWriter
from odradek.broker.replication.roles import Roles
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks


class NobodyFetches:
    """Fetchers of a broker that follows nobody, which say whom they were told to follow."""

    def __init__(self) -> None:
        self.followed: dict[Partition, int] = {}

    def follow(self, partition: Partition, leader_id: int) -> None:
        self.followed[partition] = leader_id

    def stop(self, partition: Partition) -> None:
        self.followed.pop(partition, None)

    def changed(self, partition: Partition) -> None:
        """There is nobody to tell."""


def nothing() -> None:
    """No error."""


def hosted(
    environment: Environment,
    tasks: Tasks,
    node_id: int = 0,
    replica_lag_ms_max: float = 30_000.0,
    require_lease: Callable[[], None] = nothing,
) -> PartitionHost:
    """The host of partitions whose broker never loses its place, unless told otherwise."""
    return PartitionHost.of(node_id, environment, tasks, replica_lag_ms_max, require_lease, require_lease)


def roles_alone(node_id: int, environment: Environment, tasks: Tasks) -> Roles:
    writer = IsrWriter(MemoryStore(), node_id, environment, tasks, image=ClusterImage, broker_epoch=lambda: 0)
    return Roles(node_id, environment, writer, NobodyFetches(), {})
