"""May offsets be committed, read or deleted, may the group be deleted? (validate… of Kafka's ClassicGroup) Pure."""

from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.classic.subscriptions import CONSUMER_PROTOCOL_TYPE
from odradek.protocol.errors import ErrorCode, KafkaError


def validate_commit(
    group: GroupState, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool
) -> None:
    """A member commits in its generation; without members everybody may, with generation -1.

    A transactional commit without a member (before KIP-447) is accepted always, and one of a member during a rebalance.
    Raises KafkaError: COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS.
    """
    group.refuse_dead()
    is_empty = group.state is ClassicState.EMPTY
    if generation < 0 and is_empty:
        return
    if generation >= 0 or member_id or instance_id is not None:
        group.roster.known(member_id, instance_id)
        group.check_generation(generation)
    elif not is_transactional:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "the group has members, and only they may commit")
    if not is_transactional and group.state is ClassicState.COMPLETING_REBALANCE:
        # The member knows the generation, but cannot know yet what it was assigned.
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def validate_fetch(group: GroupState) -> None:
    """Raises KafkaError: GROUP_ID_NOT_FOUND."""
    if group.state is ClassicState.DEAD:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)


def validate_offset_delete(group: GroupState) -> None:
    """Whose topics are known may have offsets of others deleted while it has members (`is_subscribed`).

    Raises KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
    """
    validate_fetch(group)
    if group.state is not ClassicState.EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)


def validate_delete(group: GroupState) -> None:
    """Raises KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
    validate_fetch(group)
    if group.state is not ClassicState.EMPTY:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)


def is_subscribed(group: GroupState, topic: str) -> bool:
    """Whether a member may read this topic. Where subscriptions of consumers do not parse, it may be any topic."""
    if group.subscribed_topics is None:
        return group.protocol_type == CONSUMER_PROTOCOL_TYPE
    return topic in group.subscribed_topics
