"""Where a consumer is sent that says its rack, by who is there, in sync, and has what it asks for."""

import pytest

from odradek.broker.replica.replicas import Replicas
from odradek.broker.replication.closest_replica import NO_REPLICA, closest_replica

RACKS = {1: "a", 2: "b", 3: "b", 4: None}
START, END = 100, 200


def replicas(isr: tuple[int, ...] = (1, 2, 3, 4), **ends: int) -> Replicas:
    """Broker 1 leads; followers have come to END, or where `ends` says."""
    made = Replicas(1, (1, 2, 3, 4), isr)
    for broker_id, follower in made.followers.items():
        follower.fetched(ends.get(f"of_{broker_id}", END), 0.0, END)
    return made


def closest(made: Replicas, rack: str, fetch_offset: int = 150) -> int:
    return closest_replica(made, RACKS, rack, fetch_offset, START)


@pytest.mark.parametrize("rack", ["", "a", "c"])
def test_the_leader_is_read_without_a_rack_in_its_rack_and_where_nobody_is(rack: str) -> None:
    assert closest(replicas(), rack) == NO_REPLICA


def test_of_several_in_the_rack_it_is_the_one_that_has_come_furthest() -> None:
    assert closest(replicas(of_2=180, of_3=190), "b") == 3
    assert closest(replicas(of_2=190, of_3=180), "b") == 2


def test_a_follower_that_is_not_in_sync_or_lacks_the_offset_is_passed_over() -> None:
    assert closest(replicas(isr=(1, 3), of_3=180), "b") == 3
    assert closest(replicas(isr=(1,)), "b") == NO_REPLICA
    assert closest(replicas(of_2=149, of_3=149), "b") == NO_REPLICA


def test_a_follower_whose_log_begins_later_is_passed_over() -> None:
    made = replicas(of_2=180, of_3=190)
    made.followers[3].log_start_offset = 151
    assert closest(made, "b", 150) == 2
    assert closest(made, "b", 151) == 3
    made.followers[2].log_start_offset = 151
    assert closest(made, "b", 150) == NO_REPLICA


def test_who_waits_at_the_end_waits_in_the_rack() -> None:
    assert closest(replicas(of_2=END, of_3=END - 1), "b", END) == 2


def test_an_offset_that_is_no_more_is_the_leaders_to_tell() -> None:
    """A consumer that hears of it from a follower asks the leader again, which must not send it back for ever."""
    assert closest(replicas(), "b", START - 1) == NO_REPLICA
    assert closest(replicas(), "b", START) == 3
