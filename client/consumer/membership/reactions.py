"""What a member does about an error code of a coordinator: the table by which both protocols go.

(Source: the response handlers of AbstractCoordinator.java and AbstractHeartbeatRequestManager.java.)
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from odradek.protocol.errors import ErrorCode

__all__ = ["MemberReaction", "reaction_to"]


class MemberReaction(Enum):
    REJOIN = "rejoin"
    """Join again; what is owned stays so."""
    NAMED = "named"
    """Join again at once by the member id that was given."""
    LOSE_GENERATION = "lose generation"
    """What is owned is lost; join again by the same member id."""
    LOSE_MEMBERSHIP = "lose membership"
    """What is owned is lost; join again as a new member."""
    FIND = "find"
    """Look for the coordinator, then send the same again."""
    RETRY = "retry"
    """Send the same again after the backoff."""
    WARN = "warn"
    """The same, and the user is told: only an operator can mend it."""
    FAIL = "fail"
    """End the membership; the user is told."""


_TABLE: Final[Mapping[ErrorCode, MemberReaction]] = {
    ErrorCode.REBALANCE_IN_PROGRESS: MemberReaction.REJOIN,
    ErrorCode.MEMBER_ID_REQUIRED: MemberReaction.NAMED,
    ErrorCode.ILLEGAL_GENERATION: MemberReaction.LOSE_GENERATION,
    ErrorCode.FENCED_MEMBER_EPOCH: MemberReaction.LOSE_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID: MemberReaction.LOSE_MEMBERSHIP,
    ErrorCode.NOT_COORDINATOR: MemberReaction.FIND,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: MemberReaction.FIND,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: MemberReaction.RETRY,
    # The instance id is released when the session of its former holder ends; librdkafka waits for it too, Java fails.
    ErrorCode.UNRELEASED_INSTANCE_ID: MemberReaction.WARN,
    # Rights may be granted while the member runs.
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: MemberReaction.WARN,
}


def reaction_to(code: ErrorCode) -> MemberReaction:
    """Fatal are FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL, GROUP_MAX_SIZE_REACHED, GROUP_AUTHORIZATION_FAILED,
    INVALID_SESSION_TIMEOUT, UNSUPPORTED_ASSIGNOR, … : all that are neither in the table nor retriable."""
    found = _TABLE.get(code)
    if found is not None:
        return found
    return MemberReaction.RETRY if code.retriable else MemberReaction.FAIL
