"""What all assignors share: order of members, and the protocol that a list of assignors can go by."""

import pytest

from odradek.client.consumer.assignment.assignor import (
    RebalanceProtocol,
    in_java_order,
    ordered_members,
    rebalance_protocol,
)
from odradek.client.consumer.assignment.built_in import assignors
from tests.client.consumer.assignment.groups import member


@pytest.mark.parametrize(
    ("names", "protocol"),
    [
        (["range"], RebalanceProtocol.EAGER),
        (["cooperative-sticky"], RebalanceProtocol.COOPERATIVE),
        (["range", "cooperative-sticky"], RebalanceProtocol.EAGER),
        (["sticky", "roundrobin"], RebalanceProtocol.EAGER),
    ],
)
def test_a_list_goes_by_the_best_protocol_that_all_can_do(names: list[str], protocol: RebalanceProtocol) -> None:
    assert rebalance_protocol(assignors(names)) is protocol


def test_no_assignor_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs an assignor"):
        rebalance_protocol([])


def test_static_members_come_first_by_instance_id() -> None:
    members = [member("m1", "a"), member("m0", "a"), member("m3", "a", "i1"), member("m2", "a", "i2")]
    assert [each.member_id for each in ordered_members(members)] == ["m3", "m2", "m0", "m1"]


def test_text_is_ordered_by_utf16_units_as_in_java() -> None:
    """U+FF5E comes after the surrogates of U+1F600 in Java, and before that character by code points."""
    assert sorted(["\uff5e", "\U0001f600", "a"], key=in_java_order) == ["a", "\U0001f600", "\uff5e"]
