"""Writes of partitions: their conditions, and how many go into a commit."""

from dataclasses import replace

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import CONTROLLER_KEY, NO_LEADER, BrokerState, PartitionState, broker_key
from odradek.broker.cluster.partition_writes import PartitionWrite, commits, leader_was_restarted
from odradek.broker.cluster.store import OPERATIONS_MAX, Conflict, check_size

TOPIC_ID = bytes(range(16))
STATE = PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 1, leader_epoch=4, revision=50)
GUARD = {CONTROLLER_KEY: 7}


def image(epochs: dict[int, int]) -> ClusterImage:
    return ClusterImage(
        revision=100,
        brokers={broker_id: BrokerState(broker_id, {}, epoch=epoch) for broker_id, epoch in epochs.items()},
    )


def write(number: int, after: PartitionState, before: PartitionState = STATE) -> PartitionWrite:
    return PartitionWrite(f"/partitions/orders/{number}", before, after)


def test_a_write_expects_the_guard_its_revision_and_the_registration_of_its_leader() -> None:
    (txn,) = commits([write(0, replace(STATE, isr=(1, 2)))], image({1: 40, 2: 41}), GUARD)
    assert txn.expect == {CONTROLLER_KEY: 7, "/partitions/orders/0": 50, broker_key(1): 40}
    assert list(txn.put) == ["/partitions/orders/0"]


def test_a_commit_expects_the_current_registration_of_the_leader_or_its_absence() -> None:
    elected = write(0, replace(STATE, leader=2, leader_epoch=5))
    (txn,) = commits([elected], image({1: 40, 2: 99}), GUARD)
    assert txn.expect[broker_key(2)] == 99
    assert broker_key(1) not in txn.expect
    (txn,) = commits([write(0, replace(STATE, isr=(1, 2)))], image({2: 41}), GUARD)
    assert txn.expect[broker_key(1)] == 0
    (txn,) = commits([write(0, replace(STATE, leader=NO_LEADER, leader_epoch=5))], image({}), GUARD)
    assert txn.expect == {CONTROLLER_KEY: 7, "/partitions/orders/0": 50}


def test_a_restarted_leader_is_not_kept_in_its_former_epoch() -> None:
    assert leader_was_restarted(STATE, image({1: 51}))
    assert not leader_was_restarted(STATE, image({1: 49}))
    assert not leader_was_restarted(STATE, image({}))
    with pytest.raises(Conflict, match="broker 1, was restarted"):
        list(commits([write(0, replace(STATE, isr=(1, 2)))], image({1: 51}), GUARD))
    (txn,) = commits([write(0, replace(STATE, leader_epoch=5))], image({1: 51}), GUARD)
    assert txn.expect[broker_key(1)] == 51


def test_no_commit_has_more_conditions_than_a_store_takes() -> None:
    """Each partition is led by another broker, so each brings two conditions; the guard is in every commit."""
    epochs = dict.fromkeys(range(130), 40)
    writes = [write(number, replace(STATE, isr=(number,)), replace(STATE, leader=number)) for number in range(130)]
    writes = [each._replace(after=replace(each.after, leader=each.before.leader)) for each in writes]
    made = list(commits(writes, image(epochs), GUARD))
    for txn in made:
        check_size(txn)
        assert txn.expect.items() >= GUARD.items()
    assert [key for txn in made for key in txn.put] == [each.key for each in writes]
    assert len(made) == 3


def test_partitions_of_one_leader_fill_a_commit() -> None:
    writes = [write(number, replace(STATE, isr=(1,))) for number in range(2 * (OPERATIONS_MAX - 2))]
    made = list(commits(writes, image({1: 40}), GUARD))
    assert [len(txn.put) for txn in made] == [OPERATIONS_MAX - 2] * 2
    assert [len(txn.put) for txn in commits(writes, image({1: 40}), {})] == [OPERATIONS_MAX - 1, OPERATIONS_MAX - 3]


def test_without_leaders_the_changes_are_what_a_commit_is_limited_by() -> None:
    gone = replace(STATE, leader=NO_LEADER, leader_epoch=5)
    made = list(commits([write(number, gone) for number in range(OPERATIONS_MAX + 1)], image({}), {}))
    assert [len(txn.put) for txn in made] == [OPERATIONS_MAX, 1]


def test_nothing_to_write_is_no_commit() -> None:
    assert list(commits([], image({}), GUARD)) == []


def test_elections_come_first_and_partitions_of_one_leader_together() -> None:
    """Of a broker that is lost: a third of what changes has no leader until it is written, the rest only a replica
    less. Each of three brokers leads every third of them, and still a commit is full."""
    epochs = dict.fromkeys(range(1, 31), 40)
    shrunk = [
        write(number, replace(STATE, leader=1 + number % 30, isr=(1, 2)), replace(STATE, leader=1 + number % 30))
        for number in range(300)
    ]
    elected = [write(300 + number, replace(STATE, leader=2 + number % 3, leader_epoch=5)) for number in range(150)]
    made = list(commits([*shrunk, *elected], image(epochs), GUARD))
    assert set([key for txn in made for key in txn.put][:150]) == {each.key for each in elected}
    assert len(made) <= 5
    assert sorted(key for txn in made for key in txn.put) == sorted(each.key for each in (*shrunk, *elected))
