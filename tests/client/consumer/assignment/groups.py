"""Groups for tests of assignors: members and topics, drawn by Hypothesis or written down, and what must hold."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from odradek.client.consumer.assignment.assignor import Member, TopicLayout
from odradek.client.topic_partition import TopicPartition

TOPICS = ("a", "b", "c", "d")
Assignment = Mapping[str, Sequence[TopicPartition]]


def layouts(**counts: int) -> dict[str, TopicLayout]:
    return {topic: TopicLayout(count) for topic, count in counts.items()}


def parts(text: str) -> list[TopicPartition]:
    """`parts("a0 a1 b0")`."""
    return [TopicPartition(word[0], int(word[1:])) for word in text.split()]


def shown(assignment: Assignment) -> dict[str, str]:
    """The inverse of `parts`, for each member."""
    return {
        member_id: " ".join(f"{topic}{partition}" for topic, partition in partitions)
        for member_id, partitions in assignment.items()
    }


def member(member_id: str, topics: str, instance_id: str | None = None, rack: str | None = None) -> Member:
    return Member(member_id, frozenset(topics.split()), instance_id, rack=rack)


def topic_sets() -> st.SearchStrategy[dict[str, TopicLayout]]:
    return st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 6).map(TopicLayout), min_size=1)


@st.composite
def member_lists(draw: st.DrawFn, *, count_max: int = 5, alike: bool = False) -> list[Member]:
    subscriptions = st.frozensets(st.sampled_from((*TOPICS, "missing")), min_size=1)
    common = draw(subscriptions)
    members: list[Member] = []
    for number in range(draw(st.integers(1, count_max))):
        instance_id = draw(st.sampled_from([None, None, f"i{9 - number}"]))
        members.append(Member(f"m{number}", common if alike else draw(subscriptions), instance_id))
    return draw(st.permutations(members))


def check_all_are_assigned(
    assignment: Assignment, members: Sequence[Member], topics: Mapping[str, TopicLayout]
) -> None:
    """Every partition once, to somebody who subscribes to its topic; and every member is there."""
    topics_of = {each.member_id: each.topics for each in members}
    assert assignment.keys() == topics_of.keys()
    given = [partition for partitions in assignment.values() for partition in partitions]
    wanted = {
        TopicPartition(topic, number)
        for topic in frozenset[str]().union(*topics_of.values()) & topics.keys()
        for number in range(topics[topic].partition_count)
    }
    assert len(given) == len(set(given)) and set(given) == wanted
    for member_id, partitions in assignment.items():
        assert all(partition.topic in topics_of[member_id] for partition in partitions)


def squares(assignment: Assignment) -> int:
    return sum(len(partitions) ** 2 for partitions in assignment.values())


def moves(assignment: Assignment, owners: Mapping[TopicPartition, str]) -> int:
    """How many partitions leave their owners."""
    return sum(
        owners.get(partition, member_id) != member_id
        for member_id, partitions in assignment.items()
        for partition in partitions
    )
