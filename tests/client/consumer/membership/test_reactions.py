"""What a member does about every error code there is."""

import pytest

from odradek.client.consumer.membership.reactions import MemberReaction, reaction_to
from odradek.protocol.errors import ErrorCode


@pytest.mark.parametrize("code", ErrorCode)
def test_what_is_retriable_is_never_fatal_and_the_rest_is_in_the_table_or_fatal(code: ErrorCode) -> None:
    reaction = reaction_to(code)
    if code.retriable:
        assert reaction in (MemberReaction.RETRY, MemberReaction.FIND)


@pytest.mark.parametrize(
    ("code", "reaction"),
    [
        (ErrorCode.FENCED_INSTANCE_ID, MemberReaction.FAIL),
        (ErrorCode.UNKNOWN_MEMBER_ID, MemberReaction.LOSE_MEMBERSHIP),
        (ErrorCode.ILLEGAL_GENERATION, MemberReaction.LOSE_GENERATION),
        (ErrorCode.REBALANCE_IN_PROGRESS, MemberReaction.REJOIN),
        (ErrorCode.NOT_COORDINATOR, MemberReaction.FIND),
        (ErrorCode.UNRELEASED_INSTANCE_ID, MemberReaction.WARN),
        (ErrorCode.UNKNOWN_SERVER_ERROR, MemberReaction.FAIL),
    ],
)
def test_the_codes_of_groups(code: ErrorCode, reaction: MemberReaction) -> None:
    assert reaction_to(code) is reaction
