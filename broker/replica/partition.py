"""One partition on this broker: its log, the part that this broker has in it, and those who wait for it.

| part | what it knows | who asks |
|---|---|---|
| `role` (role.py) | who leads, since which epoch | everybody |
| `acknowledgements` | the high watermark, what is durable, in-sync replicas | Produce, DeleteRecords, coordinators |
| `reader` (partition_reader.py) | what may be read, and who waits for more | Fetch, ListOffsets |
| `listener` (partition_listener.py) | the broker around it | the partition itself |

Which role a partition has, and in which epoch, comes from the metadata image (roles.py); `state` is what this broker
knows of it, by the image or by its own writes (isr_writer.py). A follower's log grows by what its fetcher appends
(fetcher.py), and its high watermark follows its leader's.
"""

from collections.abc import Sequence

from odradek.broker.cluster.keys import PartitionState
from odradek.broker.config.broker_config import TopicConfig
from odradek.broker.log.log import Log
from odradek.broker.log.log_end import NO_TIMESTAMP, Appended
from odradek.broker.log.validation import Origin, validated
from odradek.broker.log.verifications import NO_PROOF, Proof
from odradek.broker.replica.acknowledgements import ACKS_ALL, Acknowledgements
from odradek.broker.replica.append_ticket import AppendTicket
from odradek.broker.replica.partition_host import PartitionHost
from odradek.broker.replica.partition_listener import PartitionListener
from odradek.broker.replica.partition_reader import PartitionReader
from odradek.broker.replica.quota import is_throttled
from odradek.broker.replica.replicas import Replicas
from odradek.broker.replica.role import Role
from odradek.protocol.codec.schema import Buffer
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.progress import Progress


class Partition:
    """A partition of which this broker has a replica: its leader's, or a follower's."""

    __slots__ = (
        "acknowledgements",
        "config",
        "durability",
        "host",
        "index",
        "listener",
        "log",
        "reader",
        "role",
        "state",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        log: Log,
        config: TopicConfig,
        host: PartitionHost,
        listener: PartitionListener["Partition"],
        high_watermark: int = 0,
    ) -> None:
        """`high_watermark` is what the checkpoint says."""
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.config = config
        self.host = host
        self.listener = listener
        self.state: PartitionState | None = None
        self.role = Role(self.name)
        self.acknowledgements = Acknowledgements(
            self.name, log, self.role, host, listener.may_join, high_watermark=high_watermark, moved=self._moved
        )
        self.durability = self.acknowledgements.durability
        self.acknowledgements.configure(config)
        self.acknowledgements.deletions.live_replicas = lambda: listener.live_replicas(self)
        self.reader = PartitionReader(self, self.name, log, self.acknowledgements.high_watermark)

    def __repr__(self) -> str:
        return f"<Partition {self.name} epoch {self.role.leader_epoch}>"

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def high_watermark(self) -> Progress:
        return self.acknowledgements.high_watermark

    @property
    def replicas(self) -> Replicas:
        return self.acknowledgements.replicas

    @property
    def leader_epoch(self) -> int:
        return self.role.leader_epoch

    @property
    def is_leader(self) -> bool:
        return self.role.is_leader

    # -- role ---------------------------------------------------------------------------------------------------

    def become_leader(self, leader_epoch: int, replicas: Replicas) -> None:
        """Takes leadership at `leader_epoch`, which the metadata store holds already. Raises KafkaError
        KAFKA_STORAGE_ERROR."""
        if self.log.condition.is_half_cut:  # a truncation failed half-way while it followed
            self.log.truncate_to(self.log.log_end_offset)
            self.truncated()
        self.role.lead(replicas.leader_id, leader_epoch, self.log.log_end_offset)
        self.log.begin_epoch(leader_epoch)
        self.acknowledgements.begin(replicas)
        self.listener.leadership_began(self)

    def become_follower(self, leader_id: int, leader_epoch: int) -> None:
        """Follows another broker, or nobody (NO_LEADER), at `leader_epoch`: whoever waits here for a leader is told."""
        self.acknowledgements.replicas = Replicas(leader_id, (), ())
        self._end_term(self.role.follow(leader_id, leader_epoch))

    def resign(self, error: KafkaError | None = None) -> KafkaError:
        """Stops leading: every parked request gets `error` (NOT_LEADER_OR_FOLLOWER unless told otherwise), which is
        returned."""
        error = self.role.resign(error)
        self._end_term(error)
        return error

    def _end_term(self, error: KafkaError) -> None:
        self.acknowledgements.end(error)
        self.reader.notify()
        self.listener.leadership_ended(self)

    def close(self, error: KafkaError | None = None) -> None:
        """The partition goes: whoever waits for anything is told, with `error` if it goes for that."""
        self.durability.close(self.resign(error))

    def learn(self, state: PartitionState) -> None:
        """The stored state is this one now, under the present leader epoch, whoever wrote it."""
        if self.state is not None and state.revision <= self.state.revision:
            return  # our own write is known before the image has it
        self.state = state
        if self.is_leader and state.leader_epoch == self.leader_epoch:
            self.replicas.update(state.replicas, state.isr, state.elr, self.host.environment.monotonic_ms())
            self._look_at_eligible()
            self.acknowledgements.update()

    def configure(self, config: TopicConfig) -> None:
        """Takes over what counts for the topic from now on; the log's part is the caller's."""
        self.config = config
        self.durability = self.acknowledgements.durability
        self.acknowledgements.configure(config)
        self._look_at_eligible()
        self.acknowledgements.update()

    def _look_at_eligible(self) -> None:
        """Eligible replicas that are not needed any more hold the high watermark until that is stored."""
        if self.is_leader and self.replicas.elr and self.wanted_isr() is not None:
            self.listener.isr_outdated(self)

    # -- appending ----------------------------------------------------------------------------------------------

    def append(
        self,
        batch: Buffer,
        acks: int,
        now_ms: int,
        *,
        origin: Origin = Origin.CLIENT,
        with_zstd: bool = True,
        proof: Proof = NO_PROOF,
    ) -> AppendTicket:
        """Appends one batch as its leader. `proof`: of a transaction's.

        Raises KafkaError, and nothing is appended then: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, what this broker's
        lease and `validated` raise (log/validation.py), and what `Log.append` raises.
        """
        self.role.require_leader()
        if acks == ACKS_ALL:
            self.acknowledgements.require_replicas()
        else:
            self.host.require_lease()
        data, header = validated(memoryview(batch), self.config, now_ms, origin=origin, with_zstd=with_zstd)
        end = self.log.end
        appended = end.append(data, header, self.role.leader_epoch, now_ms, proof)
        if not appended.is_duplicate:
            if self.durability.waits:
                self.durability.appended()
            if end.has_rolled:
                self._sync_closed_segments()
            self.reader.appended(len(data))
            self.acknowledgements.update()
        return AppendTicket(appended, acks, self.role, self.acknowledgements, self.host)

    def append_all(self, batches: Sequence[Buffer], acks: int, now_ms: int) -> AppendTicket:
        """Appends several batches of a coordinator, at least one, one after the other; one ticket for all. Raises as
        `append`; what was appended before the one that fails stays."""
        tickets = [self.append(batch, acks, now_ms, origin=Origin.COORDINATOR) for batch in batches]
        first, last = tickets[0].appended, tickets[-1]
        last.appended = last.appended._replace(base_offset=first.base_offset)
        return last

    def ticket_for(self, last_offset: int) -> AppendTicket:
        """For acks=all of what is in the log already: a coordinator's, from before this broker led."""
        appended = Appended(last_offset, last_offset, NO_TIMESTAMP, True)
        return AppendTicket(appended, ACKS_ALL, self.role, self.acknowledgements, self.host)

    def _sync_closed_segments(self) -> None:
        self.log.has_rolled = False
        self.host.tasks.start(self.durability.sync_closed_segments(), f"sync segments of {self.log.directory}")

    def _moved(self) -> None:
        self.reader.notify(changes=0)

    # -- followers ----------------------------------------------------------------------------------------------

    def follower_fetched(self, broker_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int = 0) -> None:
        """A follower has everything from `log_start_offset` to `fetch_offset`, and is where its log and ours are equal.
        That log start is on its disk. Raises KafkaError NOT_LEADER_OR_FOLLOWER for who is no replica, or a former life
        of one."""
        follower = self.replicas.followers.get(broker_id)
        if follower is None or not follower.identify(broker_epoch, is_in_sync=broker_id in self.replicas.isr):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {broker_id} with epoch {broker_epoch} is no replica of {self.name}",
            )
        follower.fetched(fetch_offset, self.host.environment.monotonic_ms(), self.log.log_end_offset)
        follower.log_start_offset = log_start_offset
        self.acknowledgements.update()
        if self.replicas.is_misplaced(broker_id, self.high_watermark.value, self.role.epoch_start_offset):
            self.listener.isr_outdated(self)

    def wanted_isr(self) -> tuple[int, ...] | None:
        """The in-sync set that there should be; None if it is the stored one. For a leader.

        Also asked for when nothing but the eligible leader replicas would change: they hold the high watermark.
        """
        replicas, stored, high_watermark = self.replicas, self.state, self.high_watermark.value
        if not self.is_leader or stored is None or stored.leader_epoch != self.leader_epoch:
            return None
        host = self.host
        now = self.durability.end_offset, host.environment.monotonic_ms(), host.replica_lag_ms_max
        lagging = replicas.lagging(*now, high_watermark)
        joining = [
            broker_id
            for broker_id, follower in replicas.followers.items()
            if broker_id not in (*replicas.isr, *stored.offline)  # these fetched before they lost it
            and self.listener.may_join(broker_id, follower.broker_epoch)
            and not follower.is_silent(*now)
            and replicas.may_join(broker_id, high_watermark, self.role.epoch_start_offset)
        ]
        wanted = tuple(
            broker_id
            for broker_id in replicas.assigned
            if broker_id in joining or (broker_id in replicas.isr and broker_id not in lagging)
        )
        is_elr_stale = replicas.elr and self.acknowledgements.has_enough_replicas
        return wanted if set(wanted) != set(replicas.isr) or is_elr_stale else None

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica of what this broker leads is not in sync."""
        return self.is_leader and len(self.replicas.isr) < len(self.replicas.assigned)

    @property
    def is_in_step(self) -> bool:
        """Whether, of what this broker leads, all replicas are in sync, have everything, and it counts."""
        end_offset = self.durability.end_offset
        return self.high_watermark.value == end_offset and self.replicas.is_in_step(end_offset)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether acks=all is refused for what this broker leads."""
        return self.is_leader and not self.acknowledgements.has_enough_replicas

    @property
    def is_leader_throttled(self) -> bool:
        """Whether `leader.replication.throttled.replicas` names this replica."""
        return is_throttled(self.config.leader_replication_throttled_replicas, self.index, self.host.node_id)

    # -- following (`FollowerReplica`, following.py) --------------------------------------------------------------

    @property
    def is_follower_throttled(self) -> bool:
        """Whether `follower.replication.throttled.replicas` names this replica."""
        return is_throttled(self.config.follower_replication_throttled_replicas, self.index, self.host.node_id)

    @property
    def durable_end_offset(self) -> int:
        return self.durability.end_offset

    async def durable(self, end_offset: int) -> None:
        self.durability.want(end_offset)
        await self.durability.durable.reach(end_offset)

    def appended_as_follower(self, size_bytes: int) -> None:
        self.reader.appended_bytes += size_bytes
        if self.durability.waits:
            self.durability.appended()
        if self.log.has_rolled:
            self._sync_closed_segments()

    def follow_log_start(self, log_start_offset: int) -> None:
        self.listener.log_start_followed(self, log_start_offset)

    def truncated(self) -> None:
        self.acknowledgements.truncated()
        self.listener.truncated(self)
        self.reader.notify()  # whoever waits to read on from where it was cut is out of range (DelayedFetch, case F)

    def replicated_up_to(self, leader_high_watermark: int) -> None:
        self.acknowledgements.follow(leader_high_watermark)
