"""What to do about versions that do not fit depends on which side is the older one."""

import pytest

from odradek.client.errors.client_errors import AuthorizationError, UnsupportedVersion, broker_error
from odradek.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("ours", "theirs", "advice"),
    [
        ((3, 11), (0, 2), "Upgrade the broker"),
        ((3, 11), None, "Upgrade the broker"),
        ((3, 11), (12, 14), "Upgrade this client"),
        ((3, 3), (4, 14), "Upgrade this client"),
    ],
)
def test_the_older_side_is_to_be_upgraded(ours: tuple[int, int], theirs: tuple[int, int] | None, advice: str) -> None:
    error = UnsupportedVersion("Produce", "broker 1 (kafka.test:9092)", ours, theirs)
    assert error.hint.startswith(advice)
    assert ("Upgrade the broker" in error.hint) != ("Upgrade this client" in error.hint)


@pytest.mark.parametrize(
    ("code", "is_fatal"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, False),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, True),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, True),
        (ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, False),
    ],
)
def test_a_missing_right_is_fatal_where_no_other_call_can_succeed(code: ErrorCode, is_fatal: bool) -> None:
    error = broker_error(code)
    assert isinstance(error, AuthorizationError)
    assert error.fatal is is_fatal
