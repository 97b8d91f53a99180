"""What a heartbeat has to fulfil. Pure. Rules: Kafka's GroupMetadataManager, `throwIf…`; errors are KafkaErrors."""

from collections.abc import Sequence

from odradek.broker.group.assignors.assignors import ASSIGNORS
from odradek.broker.group.consumer.group_values import Current
from odradek.broker.group.consumer.reconciliation import is_within
from odradek.broker.group.consumer.requests import (
    JOIN_EPOCH,
    NOT_GIVEN,
    STATIC_LEAVE_EPOCH,
    ConsumerHeartbeat,
)
from odradek.protocol.errors import ErrorCode, KafkaError

KEY_BYTES_MAX = 32_767
"""Of a string in the key of a record: member ids and expressions are such."""


def check_request(group_id: str, request: ConsumerHeartbeat, offered: Sequence[str]) -> None:
    """The request by itself. `offered`: the assignors of the broker. Raises INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    _refuse_blank(group_id, "The group id is empty.")
    _refuse_blank(request.instance_id, "The instance id is empty.")
    _refuse_blank(request.rack_id, "The rack id is empty.")
    if request.member_id_required or request.member_epoch != JOIN_EPOCH:
        _refuse_blank(request.member_id, "The member id is empty.")
    _refuse_long(request.member_id, "The member id")
    _refuse_long(request.topic_regex, "The regular expression")
    if request.member_epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no member epoch {request.member_epoch}.")
    elif request.member_epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Only a static member leaves with epoch -2: it has no instance id.")
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS.keys() & set(offered):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"There is no assignor {request.server_assignor}; there are {', '.join(offered)}.",
        )


def _check_join(request: ConsumerHeartbeat) -> None:
    if request.rebalance_timeout_ms == NOT_GIVEN:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A member that joins has to give its rebalance time-out.")
    if request.owned is None or request.owned:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A member that joins must own no partitions, and has to say so.")
    if request.topic_names is None and request.topic_regex is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A member that joins has to give topic names or an expression.")


def _refuse_blank(text: str | None, message: str) -> None:
    if text is not None and not text.strip():
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _refuse_long(text: str | None, what: str) -> None:
    if text is not None and len(text) * 4 > KEY_BYTES_MAX and len(text.encode()) > KEY_BYTES_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} has more than {KEY_BYTES_MAX} bytes.")


def check_epoch(current: Current, request: ConsumerHeartbeat) -> None:
    """The epoch has to be the member's.

    The previous one will do if the member owns nothing but what it has been given: the answer with the newer epoch was
    lost. A member may join again at any time: it owns nothing then. Raises FENCED_MEMBER_EPOCH.
    """
    if request.member_epoch in (current.member_epoch, JOIN_EPOCH):
        return
    if request.member_epoch > current.member_epoch:
        relation = "greater"
    elif request.member_epoch != current.previous_member_epoch or not is_within(request.owned, current.assigned):
        relation = "smaller"
    else:
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The member epoch {request.member_epoch} is {relation} than {current.member_epoch}, which the group has. "
        "The member has to give up all its partitions and join again.",
    )


def unknown_member(group_id: str, member_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is no member of group {group_id}.")


def unknown_instance(group_id: str, instance_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"No member of group {group_id} has the instance id {instance_id}.")


def fenced_instance(instance_id: str, member_id: str, owner_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.FENCED_INSTANCE_ID, f"Instance id {instance_id} is member {owner_id}'s now, and not {member_id}'s."
    )


def unreleased_instance(instance_id: str, owner_id: str) -> KafkaError:
    return KafkaError(
        ErrorCode.UNRELEASED_INSTANCE_ID, f"Member {owner_id} has the instance id {instance_id} and has not left."
    )
