"""Who is told that this broker leads a partition, and that it does not any more.

A coordinator keeps what a partition's log says in memory, for as long as its broker leads it. So it has to know of the
beginning before the first request that depends on it can arrive, and of the end before anything else happens to the
partition. Both are told within the step of the event loop in which they happen:

    leads(partition, epoch)            its log is open, and this broker takes appends in this leader epoch
    leads_no_longer(partition, epoch)  another broker leads, or nobody; the topic or its directory is gone; this broker
                                       stops; or it goes on in a later epoch, of which it is told next

Each is told once, in this order, for each epoch. An epoch that begins while this broker leads ends the one before: what
was under way then belongs to it.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from odradek.broker.replica.partition import Partition

logger = logging.getLogger(__name__)


class LeadershipSubscriber(Protocol):
    """What lives by partitions that this broker leads. Nothing here waits."""

    def leads(self, partition: Partition, leader_epoch: int) -> None: ...

    def leads_no_longer(self, partition: Partition, leader_epoch: int) -> None: ...


class Leadership:
    """Tells the subscribers of one broker: of a beginning in their order, of an end in the reverse, so that who builds
    on another subscriber is told after it, and leaves before it. One that fails is logged, and keeps nothing from the
    others."""

    def __init__(self, subscribers: Sequence[LeadershipSubscriber] = ()) -> None:
        self._subscribers = tuple(subscribers)
        self._led: dict[Partition, int] = {}

    def began(self, partition: Partition) -> None:
        self.ended(partition)
        self._led[partition] = partition.leader_epoch
        for subscriber in self._subscribers:
            try:
                subscriber.leads(partition, partition.leader_epoch)
            except Exception:
                logger.exception("%r: %s could not take note that it is led here", partition, type(subscriber).__name__)

    def ended(self, partition: Partition) -> None:
        """Does nothing where no beginning was told."""
        leader_epoch = self._led.pop(partition, None)
        if leader_epoch is None:
            return
        for subscriber in reversed(self._subscribers):
            try:
                subscriber.leads_no_longer(partition, leader_epoch)
            except Exception:
                logger.exception("%r: %s could not take note of the end", partition, type(subscriber).__name__)
