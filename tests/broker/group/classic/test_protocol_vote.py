"""The vote for a protocol: by hand, and by properties over arbitrary offers."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.group.classic.protocol_vote import ProtocolSupport, chosen_protocol
from odradek.broker.group.classic.requests import OfferedProtocol
from tests.broker.group.classic.groups import offers

names = st.lists(st.sampled_from(["range", "roundrobin", "sticky", "own"]), min_size=1, max_size=5)
groups = st.lists(names, min_size=1, max_size=5)


def support_of(members: list[tuple[OfferedProtocol, ...]]) -> ProtocolSupport:
    support = ProtocolSupport()
    for protocols in members:
        support.add(protocols)
    return support


def test_most_votes_win_among_what_all_offer() -> None:
    members = [offers("sticky", "range", "own"), offers("own", "range", "sticky"), offers("own", "sticky")]
    common = support_of(members).common(3)
    assert common == {"sticky", "own"}
    assert chosen_protocol(members, common) == "own"


def test_the_earliest_member_decides_a_tie() -> None:
    members = [offers("range", "sticky"), offers("sticky", "range")]
    assert chosen_protocol(members, support_of(members).common(2)) == "range"


def test_a_name_that_is_offered_twice_counts_once() -> None:
    support = support_of([offers("range", "range"), offers("sticky")])
    assert support.common(2) == frozenset()
    support.remove(offers("range", "range"))
    assert support.common(1) == {"sticky"}


@given(groups)
def test_what_is_chosen_is_offered_by_all(members_names: list[list[str]]) -> None:
    members = [offers(*each) for each in members_names]
    support = support_of(members)
    common = support.common(len(members))
    assert common == set(members_names[0]).intersection(*members_names)
    assert support.has_any_of(offers("range", "own"), len(members)) == bool(common & {"range", "own"})
    if common:
        assert chosen_protocol(members, common) in common
    for protocols in members:
        support.remove(protocols)
    assert support.common(1) == frozenset()
