"""What the leader of a classic group makes of what the members said."""

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.assignment.built_in import BUILT_IN
from odradek.client.consumer.membership.leading import Leading
from odradek.client.consumer.membership.requests import JoinedMember
from odradek.protocol.consumer_protocol import Subscription, decode_assignment, encode_subscription

LAYOUT = {"a": TopicLayout(2), "b": TopicLayout(1)}


def said(topics: str, owned: int | None = None, generation: int = -1) -> bytes:
    had = {} if owned is None else {"a": [owned]}
    return encode_subscription(Subscription(topics.split(), None, had, generation))


def test_every_member_gets_its_bytes_even_if_nothing_is_in_them() -> None:
    members = [JoinedMember("m0", None, said("a")), JoinedMember("m1", None, said("missing"))]
    leading = Leading(members, watches_racks=False)
    assert leading.topics == {"a", "missing"}
    assignments = dict(leading.assignments(BUILT_IN["range"](), LAYOUT))
    assert decode_assignment(assignments["m0"]).partitions == {"a": [0, 1]}
    assert decode_assignment(assignments["m1"]).partitions == {}


def test_what_members_own_reaches_the_assignor() -> None:
    members = [JoinedMember("m0", None, said("a", 1, 4)), JoinedMember("m1", None, said("a", 0, 4))]
    assignments = dict(Leading(members, watches_racks=False).assignments(BUILT_IN["cooperative-sticky"](), LAYOUT))
    assert {key: decode_assignment(data).partitions for key, data in assignments.items()} == {
        "m0": {"a": [1]},
        "m1": {"a": [0]},
    }


def test_it_is_outdated_when_a_topic_of_the_group_is_laid_out_otherwise() -> None:
    for watches_racks in (False, True):
        leading = Leading([JoinedMember("m0", None, said("a missing"))], watches_racks=watches_racks)
        leading.assignments(BUILT_IN["range"](), LAYOUT)
        assert not leading.is_outdated({**LAYOUT, "b": TopicLayout(7)})
        assert leading.is_outdated({"a": TopicLayout(3)}) and leading.is_outdated({})
        assert leading.is_outdated({**LAYOUT, "missing": TopicLayout(1)})
        racked = {"a": TopicLayout(2, (frozenset("1"), frozenset("2")))}
        assert leading.is_outdated(racked) is watches_racks


def test_who_has_not_assigned_goes_by_what_it_sees_first() -> None:
    leading = Leading([JoinedMember("m0", None, said("a"))], watches_racks=False)
    assert not leading.is_outdated(LAYOUT)
    assert leading.is_outdated({"a": TopicLayout(3)})
