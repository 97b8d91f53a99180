"""The next step of a member towards the target assignment. Pure. Rules: Kafka's CurrentAssignmentBuilder (KIP-848).

A member first gives up what the target takes from it, and says so by what it owns; only then it gets the newer epoch,
and with it the partitions that nobody else has. What others have not given up it gets at later heartbeats.

    STABLE ----------------> UNREVOKED_PARTITIONS    the target takes a partition that the member owns; same epoch
    any, nothing to give up -> STABLE                the target's epoch, and all that the target gives
    any, nothing to give up -> UNRELEASED_PARTITIONS the target's epoch; something is not free yet

A topic that the member does not subscribe to any more gives it nothing, whatever the target says: the target may be
older than the subscription.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from odradek.broker.group.assignors.spec import Partitions
from odradek.broker.group.consumer.group_values import AssignedPartitions, Current, MemberState
from odradek.protocol.errors import ErrorCode, KafkaError

NO_INDEXES: frozenset[int] = frozenset()
NONE_HELD: Mapping[int, int] = {}


class Aim(NamedTuple):
    """Where a member goes, and what it has to look at."""

    target_epoch: int
    target: Partitions
    subscribed: Callable[[bytes], bool]
    """Whether the member has subscribed to this topic, and the topic exists."""
    free: Callable[[bytes, int], bool]
    """Whether no *other* member has this partition."""
    owned: Partitions | None
    """What the member says that it owns. None: all that it was told."""
    subscription_changed: bool = False
    """By this heartbeat."""


def next_step(current: Current, aim: Aim) -> Current:
    """Raises KafkaError: FENCED_MEMBER_EPOCH, for a member in a state that this release does not know."""
    match current.state:
        case MemberState.STABLE if current.member_epoch == aim.target_epoch:
            return _without_unsubscribed(current, aim) if aim.subscription_changed else current
        case MemberState.UNREVOKED_PARTITIONS if _owns_any(current.revoking, aim.owned):
            return _without_unsubscribed(current, aim) if aim.subscription_changed else current
        case MemberState.UNKNOWN if aim.owned is None or aim.owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "A newer release has left this member in a state that is not known here. "
                "The member has to give up all its partitions and join again.",
            )
        case _:
            return _towards_target(current, aim)


def _towards_target(current: Current, aim: Aim) -> Current:
    kept: dict[bytes, dict[int, int]] = {}
    revoking: dict[bytes, Mapping[int, int]] = {}
    added: dict[bytes, list[int]] = {}
    unreleased = False
    for topic_id in {**aim.target, **current.assigned}:
        wanted = aim.target.get(topic_id, NO_INDEXES) if aim.subscribed(topic_id) else NO_INDEXES
        held = current.assigned.get(topic_id, {})
        if keep := {index: epoch for index, epoch in held.items() if index in wanted}:
            kept[topic_id] = keep
        if len(keep) < len(held):
            revoking[topic_id] = {index: epoch for index, epoch in held.items() if index not in wanted}
        missing = [index for index in wanted if index not in held]
        if add := [index for index in missing if aim.free(topic_id, index)]:
            added[topic_id] = add
        unreleased = unreleased or len(add) < len(missing)
    if revoking and _owns_any(revoking, aim.owned):
        epoch = aim.target_epoch if current.state is MemberState.UNKNOWN else current.member_epoch
        return _moved(current, epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    for topic_id, indexes in added.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(sorted(indexes), aim.target_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return _moved(current, aim.target_epoch, state, kept, {})


def _without_unsubscribed(current: Current, aim: Aim) -> Current:
    """The same assignment, but for topics that the member has just unsubscribed from: it need not wait for a target."""
    gone = {topic_id: held for topic_id, held in current.assigned.items() if not aim.subscribed(topic_id)}
    if not gone:
        return current
    kept = {topic_id: held for topic_id, held in current.assigned.items() if topic_id not in gone}
    revoking = dict(current.revoking)
    for topic_id, held in gone.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **held}
    if _owns_any(revoking, aim.owned):
        return _moved(current, current.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    return _moved(current, current.member_epoch, current.state, kept, current.revoking)


def _moved(
    current: Current, epoch: int, state: MemberState, assigned: AssignedPartitions, revoking: AssignedPartitions
) -> Current:
    """`current` itself where only the previous epoch would change: who heartbeats with the newest epoch needs none."""
    if (epoch, state, assigned, revoking) == (current.member_epoch, current.state, current.assigned, current.revoking):
        return current
    return Current(epoch, current.member_epoch, state, assigned, revoking)


def _owns_any(partitions: AssignedPartitions, owned: Partitions | None) -> bool:
    if owned is None:
        return True
    return any(not partitions[topic_id].keys().isdisjoint(owned.get(topic_id, NO_INDEXES)) for topic_id in partitions)


def is_within(owned: Partitions | None, assigned: AssignedPartitions) -> bool:
    """Whether a member owns nothing but this. It has to say what it owns."""
    if owned is None:
        return False
    return all(indexes <= assigned.get(topic_id, NONE_HELD).keys() for topic_id, indexes in owned.items())
