"""Tells every partition of a transaction how it ends, until all of them know (TransactionMarkerChannelManager).

A partition that is gone needs no marker, and one that another producer's epoch, or a later coordinator, has been told
to needs none any more. Any other refusal is tried again: the partition has no leader, its broker does not answer, or
the group coordinator loads its log.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NO_LEADER
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.txn.marker_writer import MarkerOrder, MarkerWriter, Written
from odradek.broker.txn.peer_batches import PeerBatches
from odradek.broker.txn.requests import Ending
from odradek.broker.txn.transaction import TopicPartition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

FIRST_RETRY_MS: Final = 20.0
LAST_RETRY_MS: Final = 1_000.0
FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class MarkerSender:
    """Of one broker."""

    __slots__ = ("_environment", "_metadata", "_node_id", "_peers", "_writer")

    def __init__(
        self,
        node_id: int,
        metadata: ImageFollower,
        writer: MarkerWriter,
        peers: PeerBatches[MarkerOrder, Written],
        environment: Environment,
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._writer = writer
        self._peers = peers
        self._environment = environment

    async def send(self, ending: Ending, coordinator_epoch: int, coordinates: Callable[[], bool]) -> bool:
        """Returns True once every partition has its marker or needs none, False if this broker does not coordinate any
        more: the next one begins anew."""
        left = set(ending.partitions)
        retry_ms = FIRST_RETRY_MS
        while left and coordinates():
            by_broker = _by_leader(self._metadata.image, left)
            orders = {
                broker_id: MarkerOrder(
                    ending.producer, ending.is_commit, coordinator_epoch, tuple(places), ending.version
                )
                for broker_id, places in by_broker.items()
            }
            for written in await asyncio.gather(*(self._write(*each) for each in orders.items())):
                for place, error in written.items():
                    if error is None or error.code in FENCED:
                        left.discard(place)
                    if error is not None:
                        _tell(ending, place, error)
            left &= _that_exist(self._metadata.image, left)
            if left:
                await self._environment.sleep(retry_ms)
                retry_ms = min(2 * retry_ms, LAST_RETRY_MS)
        return not left and coordinates()

    async def _write(self, broker_id: int, order: MarkerOrder) -> Written:
        if broker_id == self._node_id:
            return await self._writer.write(order)
        try:
            return await self._peers.ask(broker_id, order)
        except OSError as error:
            lost = KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id}: {error}")
            return dict.fromkeys(order.partitions, lost)


def _by_leader(image: ClusterImage, places: set[TopicPartition]) -> dict[int, Sequence[TopicPartition]]:
    """Those that have a leader, in a settled order."""
    found: dict[int, list[TopicPartition]] = {}
    for place in sorted(places):
        state = image.partition(*place)
        if state is not None and state.leader != NO_LEADER:
            found.setdefault(state.leader, []).append(place)
    return dict(found)


def _that_exist(image: ClusterImage, places: set[TopicPartition]) -> set[TopicPartition]:
    return {place for place in places if image.partition(*place) is not None}


def _tell(ending: Ending, place: TopicPartition, error: KafkaError) -> None:
    topic, index = place
    level = logging.WARNING if error.code in FENCED else logging.INFO
    logger.log(
        level,
        "transaction of %r, producer %d epoch %d: %s-%d did not take the marker: %s",
        *(ending.transactional_id, *ending.producer, topic, index, error),
    )
