"""A member by KIP-848: heartbeats at once, the first of which joins. What it is assigned it owns with the next one."""

import uuid

from benchmarks.groups.stability import MemberSteps, Stability
from benchmarks.load.wire import check
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

VERSION = 1
JOINING, LEAVING = 0, -1
"""In the place of an epoch."""
REBALANCE_TIMEOUT_MS = 30_000


def consumer_member(number: int, group: str, topic: str, stability: Stability) -> MemberSteps:
    """Sends heartbeats until the group is stable, then leaves. Raises KafkaError for any error."""
    member_id = str(uuid.uuid4())
    beat = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=JOINING,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    owned: list[TopicPartitions] = []
    while not stability.is_reached:
        told = beat.topic_partitions
        answered: ConsumerGroupHeartbeatResponse = yield beat, VERSION
        check(answered.error_code, answered.error_message)
        if told is not None:
            owned = told
        partitions = [index for each in owned for index in each.partitions]
        stability.tell(number, answered.member_epoch, frozenset(partitions))
        assigned = None if answered.assignment is None else answered.assignment.topic_partitions
        beat = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=answered.member_epoch, topic_partitions=assigned
        )
    left = yield ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=LEAVING), VERSION
    check(left.error_code, left.error_message)
