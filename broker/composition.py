"""What answers requests, put together from its parts: the same for a server and for tests without sockets.

    context = compose(parts)
    context.partitions.load(image)                             # every log is open
    context.metadata.subscribe(context.partitions.apply)       # and follows the metadata from here on
    await dispatch(context, …)

Start, listeners, registration and stop are the server's (server.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.access.access import Access
from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster.store import MetadataStore
from odradek.broker.cluster_member import ClusterMember
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.disk.disk import Disk
from odradek.broker.fetching.consumer_sessions import FetchSessions
from odradek.broker.group.group_counts import GroupCounts
from odradek.broker.group_coordinator import group_shards
from odradek.broker.handling.context import Api, BrokerIdentity, Context, Sessions
from odradek.broker.handling.interceptors import Interceptors
from odradek.broker.handling.releases import acting_as
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.registration import Registration
from odradek.broker.observability.access_samples import access_samples
from odradek.broker.observability.authentication_samples import authentication_samples
from odradek.broker.observability.group_lag import group_lag_samples
from odradek.broker.observability.group_samples import group_samples
from odradek.broker.observability.partition_samples import partition_samples
from odradek.broker.observability.quota_samples import quota_samples
from odradek.broker.observability.request_metrics import RequestMetrics
from odradek.broker.observability.request_samples import request_samples
from odradek.broker.observability.sample import Sample
from odradek.broker.partitions.late_transactions import late_ms
from odradek.broker.partitions.table import Partitions
from odradek.broker.quotas.connection_quotas import ConnectionQuotas
from odradek.broker.replica.leadership import Leadership, LeadershipSubscriber
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_host import PartitionHost
from odradek.broker.replica.quota import ReplicationQuota
from odradek.broker.replication.follower_sessions import FollowerSessions
from odradek.broker.replication.roles import Key
from odradek.broker.txn.producer_ids import ProducerIds
from odradek.broker.txn.transactions import Transactions
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

if TYPE_CHECKING:
    from odradek.broker.handling.enforcement import Enforcement

SUBSCRIBERS: Final[Sequence[LeadershipSubscriber]] = ()
"""What lives by partitions that this broker leads, each behind those that it builds on (replica/leadership.py)."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What is there before a broker can be put together."""

    identity: BrokerIdentity
    environment: Environment
    tasks: Tasks
    config: BrokerConfig
    disk: Disk
    directories: DataDirectories
    store: MetadataStore
    image: ClusterImage
    """What the store said last."""
    registration: Registration
    listener: str
    """On which brokers talk to one another."""
    served: Mapping[int, Api]
    """By key, with their versions: another table makes it a broker of another release (served.py), and `act.as` has it
    tell clients less (handling/releases.py)."""
    epochs_at_start: Mapping[Key, int]
    """The leader epochs before this broker registered: it leads nothing at those (replication/roles.py)."""
    subscribers: Sequence[LeadershipSubscriber] = SUBSCRIBERS
    access: Access | None = None
    """None: as the configuration has it."""
    interceptors: Interceptors = field(default_factory=Interceptors)


def compose(parts: Parts) -> Context:
    """A broker that answers requests, once its logs are open (`partitions.load`); nothing runs yet. Its metadata is not
    followed before `partitions.apply` subscribes to it."""
    environment, config, registration = parts.environment, parts.config, parts.registration
    node_id = parts.identity.node_id
    metadata = ImageFollower(parts.store, parts.image)
    quota = ReplicationQuota(config.leader_replication_throttled_rate, environment.monotonic_ms())

    def configure(image: ClusterImage, delta: Delta) -> None:
        if delta.broker_configs:
            take_options(config, image, node_id)
            quota.configure(config.leader_replication_throttled_rate, environment.monotonic_ms())

    metadata.subscribe(configure)  # first: who is told next goes by them
    member = ClusterMember(
        metadata, config, registration, environment, parts.tasks, parts.listener, parts.epochs_at_start
    )
    host = PartitionHost.of(
        node_id,
        environment,
        parts.tasks,
        config.replica_lag_time_max_ms,
        registration.require_lease,
        registration.require_unfenced,
    )
    access, enforcement = _access(parts, member)
    counts = GroupCounts()
    groups = group_shards(config, environment, metadata, parts.disk, parts.tasks, counts)

    def find(topic: str, index: int) -> Partition:
        return partitions.find(topic, index)

    transactions = Transactions(
        node_id,
        config,
        environment,
        metadata,
        parts.disk,
        parts.tasks,
        member.connect,
        find,
        groups,
        ProducerIds(parts.store),
    )
    subscribers: tuple[LeadershipSubscriber, ...] = (groups, transactions.shards, *parts.subscribers)
    partitions = Partitions(parts.directories, host, config, member.roles, Leadership(subscribers))
    new_session_id = partial(_session_id, environment)
    context = Context(
        identity=parts.identity,
        environment=environment,
        tasks=parts.tasks,
        config=config,
        disk=parts.disk,
        metadata=metadata,
        member=member,
        partitions=partitions,
        access=access,
        sessions=Sessions(
            FetchSessions(config.max_incremental_fetch_session_cache_slots, new_session_id),
            FollowerSessions(environment.loop, new_session_id, config, quota),
        ),
        groups=groups,
        group_counts=counts,
        transactions=transactions,
        metrics=RequestMetrics(),
        served=acting_as(parts.served, config.act_as),
        interceptors=parts.interceptors,
        enforcement=enforcement,
    )
    metadata.subscribe(partial(_follow_quotas, context))
    _take_quotas(context, parts.image)
    return context


def _access(parts: Parts, member: ClusterMember) -> "tuple[Access, Enforcement | None]":
    """What may be done, and from when on that counts."""
    if parts.access is not None:
        return parts.access, None
    if not parts.config.authorizer_class_name:
        return Access(), None
    from odradek.broker.handling.enforcement import Enforcement

    enforcement = Enforcement(parts.config, member)
    return enforcement.access, enforcement


def _session_id(environment: Environment) -> int:
    return int.from_bytes(environment.random_bytes(4), "big") & 0x7FFFFFFF


def _follow_quotas(context: Context, image: ClusterImage, delta: Delta) -> None:
    if delta.are_quotas_changed:
        _take_quotas(context, image)


def _take_quotas(context: Context, image: ClusterImage) -> None:
    """What the image says of quotas counts from here on. Without any nothing is counted, or even imported."""
    if context.quotas is None and not image.quotas:
        return
    from odradek.broker.handling.throttling import Throttling
    from odradek.broker.quotas.client_quotas import ClientQuotas

    throttling = context.quotas or Throttling(context, ClientQuotas.of(context.config))
    throttling.quotas.configure(image.quotas)
    context.quotas = throttling if throttling.quotas.are_set else None


def take_options(config: BrokerConfig, image: ClusterImage, node_id: int) -> None:
    """What the cluster says of its brokers' options counts from here on."""
    config.update(image.configs_of_broker(None), image.configs_of_broker(node_id))


def metric_sources(
    context: Context, connections: ConnectionQuotas, others: Sequence[Callable[[], Iterable[Sample]]]
) -> Sequence[Callable[[], Iterable[Sample]]]:
    """What the metrics page tells, each asked anew; `others` come behind it."""
    config, environment = context.config, context.environment
    return (
        partial(request_samples, context.metrics),
        lambda: partition_samples(context.partitions, environment.now_ms(), late_ms(config)),
        partial(group_samples, context.groups, context.group_counts),
        lambda: group_lag_samples(context.groups, context.partitions, config.metrics_group_lag_max_series),
        context.member.samples,
        lambda: quota_samples(
            None if context.quotas is None else context.quotas.quotas, connections, environment.monotonic_ms()
        ),
        lambda: authentication_samples(context.authentication),
        lambda: access_samples(context.access, len(context.metadata.image.acls)),
        *others,
    )
