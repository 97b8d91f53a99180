"""Histories of classic groups that Hypothesis writes: whatever is lost, late or expelled, a partition has one reader at
most, at every moment, and in the end everybody is stable.

Eager groups and cooperative ones; members come, leave, are not polled; the coordinator fails over. The coordinator is
`model_group.py`, what is between it and the members `member_world.py`, the steps are in `histories.py`.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.assignment.built_in import assignors
from odradek.client.consumer.membership.classic import ClassicMembership
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.network.backoff import Backoff
from tests.client.consumer.membership.histories import GroupWorld, Step, histories
from tests.client.consumer.membership.model_group import ModelGroup


def world_of(names: tuple[str, ...], *, static: bool) -> GroupWorld:
    group = ModelGroup()
    world = GroupWorld(group, {"a": TopicLayout(3), "b": TopicLayout(2), "c": TopicLayout(4)})

    def member(number: int) -> ClassicMembership:
        made = MembershipSettings(
            "billing",
            group_instance_id=f"i{number}" if static and number % 2 else None,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=3_000,
            max_poll_interval_ms=30_000,
        )
        return ClassicMembership(made, assignors(names), Backoff(100, 1_000, lambda: 0.5))

    world.fill(member, lambda member_id: group.expel([member_id], world.now_ms))
    return world


@pytest.mark.parametrize("names", [("range",), ("sticky", "roundrobin"), ("cooperative-sticky",)])
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(history=histories(), static=st.booleans())
def test_one_reader_at_a_time_and_all_end_stable(names: tuple[str, ...], history: list[Step], static: bool) -> None:
    world = world_of(names, static=static)
    world.run(history)
    world.end()
    assert not any(node.failures for node in world.nodes)
