"""Reassignment (KIP-455): a partition on its way to other replicas, there, or back. Pure.

    original replicas   those that it had before
    target              those that it gets
    adding, removing    the target without the original replicas, and the reverse; both hold the partition meanwhile

A reassignment, its completion and its cancellation are what an operator asks for, so they must not do what no failure
is allowed to: take copies of acknowledged records away that `min.insync.replicas` asks for. `keeps_enough` says so of
each of them (docs/decisions/011-what-operators-may-take-away.md).

Every function takes a state and answers the next one. Epochs follow in `partition_changes.changed`. Sources:
PartitionReassignmentReplicas.java, PartitionReassignmentRevert.java, ReplicationControlManager.java of Kafka 4.3.1.
"""

from collections.abc import Collection
from dataclasses import replace

from odradek.broker.cluster.keys import NO_LEADER, PartitionState
from odradek.broker.cluster.partition_changes import eligible


def reassigned(state: PartitionState, target: Collection[int], min_insync: int) -> PartitionState:
    """On the way to other replicas: those that are added come first to all that are there (`may_complete`).

    It takes the place of a reassignment under way. Replicas which that one was adding, and which are not in `target`,
    go at once if that leaves enough in sync (`keeps_enough`). Else those of them that are in sync or eligible stay
    until the new reassignment is complete, and count as original replicas from now on, as Kafka has it for all of them.
    """
    target = tuple(target)
    after = _reassigned(state, target, (), min_insync)
    if keeps_enough(state, after, min_insync):
        return after
    members = (*state.isr, *state.elr)
    needed = tuple(broker for broker in state.adding if broker in members)
    return _reassigned(state, target, needed, min_insync)


def _reassigned(
    state: PartitionState, target: tuple[int, ...], needed: tuple[int, ...], min_insync: int
) -> PartitionState:
    """`needed`: of those that a reassignment under way adds, who must stay for now."""
    present = tuple(broker for broker in state.replicas if broker not in state.adding or broker in needed)
    adding = tuple(broker for broker in target if broker not in present)
    removing = tuple(broker for broker in present if broker not in target)
    return replace(_settled(state, (*target, *removing), min_insync), adding=adding, removing=removing)


def original_replicas(state: PartitionState) -> tuple[int, ...]:
    """Those that the partition had before it was reassigned."""
    return tuple(broker for broker in state.replicas if broker not in state.adding)


def target_replicas(state: PartitionState) -> tuple[int, ...]:
    """Those that the partition has once its reassignment is complete."""
    return tuple(broker for broker in state.replicas if broker not in state.removing)


def cancelled(state: PartitionState, min_insync: int) -> PartitionState:
    """Back to the original replicas. Where they are not enough in sync (`keeps_enough`) the state stays."""
    after = _settled(state, original_replicas(state), min_insync)
    return after if keeps_enough(state, after, min_insync) else state


def completed(state: PartitionState, min_insync: int) -> PartitionState:
    """With the target's replicas alone, if the reassignment may be completed."""
    return _settled(state, target_replicas(state), min_insync) if may_complete(state, min_insync) else state


def may_complete(state: PartitionState, min_insync: int) -> bool:
    """Whether a reassignment is under way whose successors are there: all that are added are in sync, and where fewer
    are added than removed, the whole target is (PartitionReassignmentReplicas.java of Kafka 4.3.1, KAFKA-19975); and
    enough stay in sync (`keeps_enough`), which Kafka does not ask for."""
    if not (state.adding or state.removing) or not all(broker in state.isr for broker in state.adding):
        return False
    target = target_replicas(state)
    if len(state.adding) < len(state.removing) and not all(broker in state.isr for broker in target):
        return False
    return keeps_enough(state, _settled(state, target, min_insync), min_insync)


def keeps_enough(before: PartitionState, after: PartitionState, min_insync: int) -> bool:
    """Whether a change that an operator asks for takes no copy away that is needed: as many are in sync afterwards as
    before, or as many as `min_insync` asks for, which counts up to the number of replicas. The same holds for those in
    sync and those eligible together."""
    enough = min(min_insync, len(after.replicas))
    members_before, members_after = len(before.isr) + len(before.elr), len(after.isr) + len(after.elr)
    return len(after.isr) >= min(enough, len(before.isr)) and members_after >= min(enough, members_before)


def _settled(state: PartitionState, replicas: tuple[int, ...], min_insync: int) -> PartitionState:
    """With these replicas and no reassignment. The leader goes with its replica; `with_leader` finds another."""
    isr = tuple(broker for broker in replicas if broker in state.isr)
    after = replace(state, replicas=replicas, adding=(), removing=(), isr=isr)
    return replace(
        after,
        elr=eligible(after, isr, min_insync),
        leader=state.leader if state.leader in replicas else NO_LEADER,
    )
