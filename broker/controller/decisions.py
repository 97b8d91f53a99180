"""What the controller makes of a partition, given who is there. Pure.

`decided` compares a partition with the cluster and answers the state that it should have: without those who are gone or
about to stop, led by somebody who may lead, with a reassignment completed whose successors are in sync. It looks at
nothing but the present, so a controller that was elected a moment ago decides like the one before it, and deciding
twice changes nothing.

A leader that was restarted takes a new leader epoch before it leads again: what it appended since its last answer may
be lost, and requests of its former life must not count. That it was restarted is seen by revisions: its registration is
younger than the partition's last change. Nobody's write hides that, for all of them name the registration in their
conditions (cluster/partition_writes.py, replication/isr_writer.py).
"""

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState
from odradek.broker.cluster.partition_changes import (
    may_lead,
    with_leader,
    with_preferred_leader,
    without_unusable,
)
from odradek.broker.cluster.partition_writes import with_epochs
from odradek.broker.cluster.reassignment import completed


def decided(state: PartitionState, image: ClusterImage, min_insync: int, *, unclean: bool) -> PartitionState:
    """The state that the partition should have; the same object if it has it.

    `min_insync` and `unclean`: the topic's `min.insync.replicas` and `unclean.leader.election.enable`.
    """
    if _is_settled(state, image):
        return state
    is_usable = may_lead(state, image.is_usable)
    after = seen(state, image, min_insync, unclean=unclean)
    after = with_leader(completed(after, min_insync), is_usable, unclean=unclean)
    return with_epochs(state, after, image)


def seen(state: PartitionState, image: ClusterImage, min_insync: int, *, unclean: bool = False) -> PartitionState:
    """The partition given who is there now: without those who are gone or about to stop, and led, if it can be. Whoever
    counts who is in sync counts here, for the stored set may name brokers that are gone."""
    is_usable = may_lead(state, image.is_usable)
    return with_leader(without_unusable(state, is_usable, min_insync), is_usable, unclean=unclean)


def _is_settled(state: PartitionState, image: ClusterImage) -> bool:
    """The usual case, decided quickly: many partitions are looked at whenever a broker comes or goes."""
    brokers, stopping = image.brokers, image.stopping
    leader = brokers.get(state.leader)
    if leader is None or leader.epoch > state.revision or state.adding or state.removing or state.offline:
        return False
    return not any(broker_id not in brokers or broker_id in stopping for broker_id in state.isr)


def preferred(state: PartitionState, image: ClusterImage) -> PartitionState:
    """Led by the first of its replicas, if that is in sync and usable; the same object otherwise."""
    after = with_preferred_leader(state, may_lead(state, image.is_usable))
    return state if after is state else with_epochs(state, after, image)
