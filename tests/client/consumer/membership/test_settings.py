"""Settings that contradict one another are refused."""

import pytest

from odradek.client.consumer.membership.settings import MembershipSettings


def test_a_member_is_static_by_its_instance_id() -> None:
    assert MembershipSettings("billing", "i1").is_static and not MembershipSettings("billing").is_static


@pytest.mark.parametrize(
    ("group_id", "instance_id", "interval_ms", "text"),
    [
        ("", None, 3_000, "group_id"),
        ("billing", "", 3_000, "group_instance_id"),
        ("billing", None, 45_000, r"heartbeat_interval_ms \(45000\) must be lower than session_timeout_ms \(45000\)"),
    ],
)
def test_what_cannot_be_is_refused(group_id: str, instance_id: str | None, interval_ms: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        MembershipSettings(group_id, instance_id, heartbeat_interval_ms=interval_ms)
