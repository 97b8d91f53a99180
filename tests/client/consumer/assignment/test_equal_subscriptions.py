"""Members that subscribe to the same topics: even, and with as few moves as that allows."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.consumer.assignment.equal_subscriptions import divide_equally
from odradek.client.topic_partition import TopicPartition
from tests.client.consumer.assignment.groups import moves, parts, shown


def test_who_owns_nothing_is_dealt_to_in_turn() -> None:
    assert shown(divide_equally(["m0", "m1"], parts("a0 a1 a2 b0 b1"), {})) == {"m0": "a0 a2 b1", "m1": "a1 b0"}


def test_a_new_member_takes_what_others_have_too_much() -> None:
    owners = dict.fromkeys(parts("a0 a1 a2"), "m0") | dict.fromkeys(parts("a3 a4 a5"), "m1")
    divided = divide_equally(["m0", "m1", "m2"], parts("a0 a1 a2 a3 a4 a5"), owners)
    assert shown(divided) == {"m0": "a0 a1", "m1": "a3 a4", "m2": "a2 a5"}


def test_who_owns_one_more_keeps_it() -> None:
    """Also when it is not the first one that may have one more."""
    owners = dict.fromkeys(parts("a0"), "m0") | dict.fromkeys(parts("a1 a2"), "m1")
    assert shown(divide_equally(["m0", "m1"], parts("a0 a1 a2"), owners)) == {"m0": "a0", "m1": "a1 a2"}


@given(st.integers(1, 6), st.integers(0, 20), st.data())
def test_it_is_even_with_the_fewest_moves(member_count: int, count: int, data: st.DataObject) -> None:
    members = [f"m{number}" for number in range(member_count)]
    partitions = [TopicPartition("a", number) for number in range(count)]
    drawn = data.draw(st.lists(st.sampled_from([None, *members]), min_size=count, max_size=count))
    owners = {each: owner for each, owner in zip(partitions, drawn, strict=True) if owner is not None}
    divided = divide_equally(members, partitions, owners)

    sizes = {member_id: len(mine) for member_id, mine in divided.items()}
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert sorted(each for mine in divided.values() for each in mine) == partitions
    share, extra = divmod(count, member_count)
    owned = [list(owners.values()).count(member_id) for member_id in members]
    kept_at_most = sum(min(number, share) for number in owned) + min(extra, sum(number > share for number in owned))
    assert moves(divided, owners) == len(owners) - kept_at_most
