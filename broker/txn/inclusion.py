"""Asks the coordinator of a transaction, on this broker or another one, whether it includes partitions (KIP-890;
Kafka's AddPartitionsToTxnManager)."""

from odradek.broker.cluster.keys import NO_LEADER
from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.coordinator.shards import Shards
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.peer_batches import PeerBatches
from odradek.broker.txn.peer_requests import Included, Inclusion
from odradek.broker.txn.requests import AddPartitions, Verified, Verify
from odradek.broker.txn.transaction import BUMPED_FOR_EACH_SINCE
from odradek.protocol.errors import ErrorCode, KafkaError


class Inclusions:
    """Of one broker."""

    __slots__ = ("_metadata", "_node_id", "_peers", "_shards")

    def __init__(
        self,
        node_id: int,
        metadata: ImageFollower,
        shards: Shards[TransactionMachine],
        peers: PeerBatches[Inclusion, Included],
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._shards = shards
        self._peers = peers

    async def ask(self, question: Inclusion) -> Included:
        """Of each partition: NONE where the transaction includes it, from now on where that was asked for.

        Raises KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, NOT_COORDINATOR,
        COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
        """
        index = self._shards.index_of(question.transactional_id)
        state = None if index is None else self._metadata.image.partition(self._shards.topic, index)
        if state is None or state.leader == NO_LEADER:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{question.transactional_id!r} has no coordinator at the moment"
            )
        if state.leader == self._node_id:
            return await self.ask_here(question)
        try:
            return await self._peers.ask(state.leader, question)
        except OSError as error:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"broker {state.leader}, the coordinator: {error}"
            ) from error

    async def ask_here(self, question: Inclusion) -> Included:
        """Where this broker coordinates. Raises as `ask`."""
        shard = self._shards.of(question.transactional_id)
        transactional_id, producer, partitions, adds = question
        if not adds:
            verify = Verify(transactional_id, producer, partitions)

            def verifying(machine: TransactionMachine, waiting: Waiting[Verified], now: Now) -> None:
                machine.verify(verify, waiting, now)

            return await shard.ask(verifying)
        add = AddPartitions(transactional_id, producer, partitions, BUMPED_FOR_EACH_SINCE)

        def adding(machine: TransactionMachine, waiting: Waiting[None], now: Now) -> None:
            machine.add_partitions(add, waiting, now)

        await shard.ask(adding)
        return dict.fromkeys(partitions, ErrorCode.NONE)
