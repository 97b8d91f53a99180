"""What a broker has to do with transactions, put together: it coordinates those of the partitions of
`__transaction_state` that it leads, asks other coordinators, and has markers written, by itself and by others.

    transactions.shards.of(transactional_id).ask(…)      a producer's question
    await transactions.inclusions.ask(…)                 a Produce: does the transaction include the partition?
    await transactions.writer.write(…)                   another coordinator's markers
"""

from collections.abc import Callable
from typing import Final

from odradek.broker.cluster.features import TRANSACTION_VERSION
from odradek.broker.cluster.store import StoreClosed
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.coordinator.machine import Outbox
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.coordinator.shards import Shards
from odradek.broker.disk.disk import Disk
from odradek.broker.group.machine import GroupMachine
from odradek.broker.internal_topic_names import TRANSACTIONS_TOPIC
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.replica.partition import Partition
from odradek.broker.txn.inclusion import Inclusions
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.marker_sender import MarkerSender
from odradek.broker.txn.marker_writer import MarkerWriter
from odradek.broker.txn.peer_batches import Connect, PeerBatches
from odradek.broker.txn.peer_requests import ask_for_inclusion, ask_for_markers
from odradek.broker.txn.producer_ids import ProducerIds
from odradek.broker.txn.requests import Ending
from odradek.protocol.batches.compression import Codec
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.transaction_log import FLEXIBLE_SINCE
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

APPEND_AT_ONCE_MS: Final = -1


class _Options:
    """What of the broker's options its shards and their machines go by."""

    def __init__(self, config: BrokerConfig, metadata: ImageFollower) -> None:
        self._config = config
        self._metadata = metadata

    append_linger_ms = APPEND_AT_ONCE_MS
    """To the end of the loop's turn: a producer that waits writes nothing."""
    compression = Codec.NONE

    @property
    def transaction_two_phase_commit_enable(self) -> bool:
        return self._config.transaction_two_phase_commit_enable

    @property
    def commit_timeout_ms(self) -> int:
        return self._config.offsets_commit_timeout_ms

    @property
    def transaction_max_timeout_ms(self) -> int:
        return self._config.transaction_max_timeout_ms

    @property
    def transactional_id_expiration_ms(self) -> int:
        return self._config.transactional_id_expiration_ms

    @property
    def transaction_remove_expired_transaction_cleanup_interval_ms(self) -> int:
        return self._config.transaction_remove_expired_transaction_cleanup_interval_ms

    @property
    def stored_version(self) -> int:
        is_flexible = self._metadata.image.features.get(TRANSACTION_VERSION, 0) >= 1
        return FLEXIBLE_SINCE if is_flexible else 0


class Transactions:
    """Of one broker."""

    def __init__(
        self,
        node_id: int,
        config: BrokerConfig,
        environment: Environment,
        metadata: ImageFollower,
        disk: Disk,
        tasks: Tasks,
        connect: Connect,
        find: Callable[[str, int], Partition],
        groups: Shards[GroupMachine],
        producer_ids: ProducerIds,
    ) -> None:
        """`connect` reaches another broker, `find` a partition on this one."""
        self.producer_ids = producer_ids
        self._tasks = tasks
        options = _Options(config, metadata)

        def partition_count(name: str) -> int | None:
            topic = metadata.image.topics.get(name)
            return None if topic is None else len(topic.partitions)

        def machine(outbox: Outbox) -> TransactionMachine:
            return TransactionMachine(outbox, options, self._end)

        self.shards = Shards(TRANSACTIONS_TOPIC, machine, options, partition_count, disk, tasks)
        self.inclusions = Inclusions(node_id, metadata, self.shards, PeerBatches(connect, ask_for_inclusion, tasks))
        self.writer = MarkerWriter(find, groups, environment, lambda: config.offsets_commit_timeout_ms)
        self._sender = MarkerSender(
            node_id, metadata, self.writer, PeerBatches(connect, ask_for_markers, tasks), environment
        )

    def _end(self, ending: Ending) -> None:
        """A shard says it: how this transaction ends is committed."""
        self._tasks.start(self._tell_partitions(ending), f"end a transaction of {ending.transactional_id!r}")

    async def _tell_partitions(self, ending: Ending) -> None:
        try:
            shard = self.shards.of(ending.transactional_id)
        except KafkaError:
            return  # another broker coordinates, or the log is loaded again: it is told anew
        machine = shard.machine

        def coordinates() -> bool:
            # A machine that was loaded again has this told by another task, which may be done before this one: the
            # same marker would end the producer's next transaction then.
            return shard.state is ShardState.ACTIVE and shard.machine is machine

        if await self._sender.send(ending, shard.leader_epoch, coordinates):
            shard.do(lambda _, now: machine.markers_written(ending, now))

    async def new_producer_id(self) -> int:
        """Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS, at which producers ask again, as Kafka while it has no block
        of ids."""
        try:
            return await self.producer_ids.allocate()
        except (OSError, StoreClosed) as error:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no block of producer ids: {error}") from error

    def stop(self) -> None:
        self.shards.stop()
