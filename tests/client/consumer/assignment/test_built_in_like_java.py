"""The built-in assignors beside Java's, over groups drawn from a seed: racks, static members, claims of all kinds.

`range` and `roundrobin` give the same. The sticky ones may choose other partitions, since Java's choice depends on the
order of a hash map; they are as even or more even, and if as even, they move as few or fewer.
"""

from collections.abc import Iterator
from random import Random

import pytest

from odradek.client.consumer.assignment.assignor import Member, TopicLayout
from odradek.client.consumer.assignment.built_in import BUILT_IN
from odradek.client.consumer.assignment.claims import Claim, weigh
from odradek.client.consumer.assignment.sticky_assignor import divide
from odradek.client.consumer.assignment.user_data import encode_previous_assignment
from odradek.client.topic_partition import TopicPartition
from tests.client.consumer.assignment.groups import moves, squares
from tests.client.consumer.assignment.java_assignors import Group, divided_by_java

pytestmark = [pytest.mark.java, pytest.mark.slow]

SEED = 8
COUNT = 150
"""Groups for each assignor."""


def drawn_groups() -> Iterator[Group]:
    rng = Random(SEED)
    for assignor in BUILT_IN:
        for _ in range(COUNT):
            topics = {topic: drawn_layout(rng) for topic in "abcd" if rng.random() < 0.8}
            yield Group(assignor, drawn_members(rng, topics, assignor), topics)


def drawn_layout(rng: Random) -> TopicLayout:
    count = rng.choice([1, 2, 3, 5, 8])
    if rng.random() < 0.5:
        return TopicLayout(count)
    return TopicLayout(count, tuple(frozenset(rng.sample("123", rng.randint(1, 3))) for _ in range(count)))


def drawn_members(rng: Random, topics: dict[str, TopicLayout], assignor: str) -> list[Member]:
    """Owned partitions are claimed by one member each, as after a rebalance that all took part in."""
    has_racks = assignor == "range" and rng.random() < 0.7
    is_alike = rng.random() < 0.5
    subscription = rng.sample("abcde", rng.randint(1, 4))
    count = rng.randint(1, 5)
    members: list[Member] = []
    free = [
        TopicPartition(topic, number) for topic, layout in topics.items() for number in range(layout.partition_count)
    ]
    rng.shuffle(free)
    for number in range(count):
        names = frozenset(subscription if is_alike else rng.sample("abcde", rng.randint(1, 4)))
        owned: list[TopicPartition] = []
        if "sticky" in assignor:
            wish = rng.randint(0, 6)
            owned = [each for each in free if each.topic in names][:wish]
            free = [each for each in free if each not in owned]
        members.append(
            Member(
                f"m{number}",
                names,
                f"i{9 - number}" if rng.random() < 0.3 else None,
                tuple(owned),
                5,
                rng.choice(["1", "2", "3", None]) if has_racks else None,
            )
        )
    return members


@pytest.fixture(scope="module")
def answers() -> list[tuple[Group, dict[str, list[TopicPartition]]]]:
    groups = list(drawn_groups())
    return list(zip(groups, divided_by_java(groups), strict=True))


def with_user_data(group: Group) -> list[Member]:
    return [
        Member(
            member.member_id,
            member.topics,
            member.instance_id,
            user_data=encode_previous_assignment(member.owned, member.generation),
        )
        for member in group.members
    ]


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_it_gives_what_java_gives(name: str, answers: list[tuple[Group, dict[str, list[TopicPartition]]]]) -> None:
    for group, by_java in answers:
        if group.assignor == name:
            ours = BUILT_IN[name]().assign(group.members, group.topics)
            assert {key: sorted(mine) for key, mine in ours.items()} == {
                key: sorted(mine) for key, mine in by_java.items()
            }, group


def test_sticky_is_as_even_as_java_and_moves_no_more(
    answers: list[tuple[Group, dict[str, list[TopicPartition]]]],
) -> None:
    better = 0
    for group, by_java in answers:
        if group.assignor == "sticky":
            owners = {partition: member.member_id for member in group.members for partition in member.owned}
            ours = BUILT_IN["sticky"]().assign(with_user_data(group), group.topics)
            our_cost = squares(ours), moves(ours, owners)
            assert our_cost <= (squares(by_java), moves(by_java, owners)), group
            better += our_cost < (squares(by_java), moves(by_java, owners))
    assert better < COUNT / 4, "this is about groups in which Java does well, too"


def test_cooperative_sticky_withholds_no_more_than_java(
    answers: list[tuple[Group, dict[str, list[TopicPartition]]]],
) -> None:
    """What Java gives leaves out what it withholds, so the divisions before that are compared by what is given."""
    for group, by_java in answers:
        if group.assignor == "cooperative-sticky":
            ours = BUILT_IN[group.assignor]().assign(group.members, group.topics)
            claims = {member.member_id: Claim(member.owned, member.generation) for member in group.members}
            whole = divide(group.members, group.topics, weigh(group.members, claims, group.topics))
            given_by_java = sum(map(len, by_java.values()))
            if squares(whole) == squares(ours):  # nothing moves
                assert given_by_java <= sum(map(len, ours.values())), group
            owned = {partition: member.member_id for member in group.members for partition in member.owned}
            assert moves(ours, owned) == moves(by_java, owned) == 0
