"""Histories of KIP-848 groups that Hypothesis writes: whatever is lost, late or fenced, a partition has one reader at
most, at every moment, and in the end everybody is stable.

The coordinator is `model_consumer_group.py`, what is between it and the members `member_world.py`, the steps are in
`histories.py`.
"""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.membership.consumer_membership import ConsumerMembership
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.network.backoff import Backoff
from tests.client.consumer.membership.histories import GroupWorld, Step, histories
from tests.client.consumer.membership.model_consumer_group import ModelConsumerGroup


def world_of(*, static: bool) -> GroupWorld:
    counts = {"a": 3, "b": 2, "c": 4}
    topics = {topic: TopicLayout(count, topic_id=topic.encode() * 16) for topic, count in counts.items()}
    group = ModelConsumerGroup(topics)
    world = GroupWorld(group, topics)

    def member(number: int) -> ConsumerMembership:
        made = MembershipSettings(
            "billing",
            group_instance_id=f"i{number}" if static and number % 2 else None,
            heartbeat_interval_ms=3_000,
            max_poll_interval_ms=30_000,
        )
        return ConsumerMembership(made, f"m{number}", Backoff(100, 1_000, lambda: 0.5))

    world.fill(member, group.expel)
    return world


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(history=histories(), static=st.booleans())
def test_one_reader_at_a_time_and_all_end_stable(history: list[Step], static: bool) -> None:
    world = world_of(static=static)
    world.run(history)
    world.end()
    assert not any(node.failures for node in world.nodes)
