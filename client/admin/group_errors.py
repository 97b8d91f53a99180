"""Errors about groups, each with what to do about it. Pure.

The hints of `odradek.client.errors.hints` are those of a producer; these are for who looks after groups.
"""

from typing import Final

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.protocol.errors import ErrorCode, code_of

__all__ = ["NOT_FOUND", "PASSING", "group_error"]

PASSING: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)
"""Errors of a group that asking again can cure."""
NOT_FOUND: Final = ErrorCode.GROUP_ID_NOT_FOUND

_MEMBERS: Final = "Stop its members, or remove them with `remove_group_members`, and ask again."
_COORDINATOR: Final = "Look whether the brokers run that hold __consumer_offsets, and what they log about it."
_HINTS: Final[dict[ErrorCode, str]] = {
    ErrorCode.GROUP_ID_NOT_FOUND: "Check the group's id; `odradek groups list` names the groups that there are.",
    ErrorCode.NON_EMPTY_GROUP: _MEMBERS,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Stop the members that read this topic, and ask again.",
    ErrorCode.INVALID_GROUP_ID: "The id of a group is a text that is not empty.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: _COORDINATOR,
    ErrorCode.NOT_COORDINATOR: "The group is changing its coordinator; ask again.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator reads its log since it took over; ask again.",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "Shorten the metadata, or raise offset.metadata.max.bytes of the brokers.",
    ErrorCode.REBALANCE_IN_PROGRESS: _MEMBERS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT: "A transaction with offsets of the group is open; ask again when it has ended.",
    ErrorCode.FENCED_INSTANCE_ID: "Another member has this instance id now: describe the group, and name that one.",
}


def group_error(code: int, broker_message: str | None, what: str, hint: str | None = None) -> ClientError:
    """The error for a code that a broker answered. `what`: what was asked. `hint`: of a call that knows better."""
    error = broker_error(code, broker_message, what)
    known = _HINTS.get(code_of(code)) if hint is None else hint
    if known is not None:
        error.hint = known
    return error
