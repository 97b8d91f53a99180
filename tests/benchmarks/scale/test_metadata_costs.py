"""A small cluster is made up, every broker has its share of it, and what is counted is what is there."""

from collections import Counter

from benchmarks.scale.metadata_costs import (
    BROKERS,
    LOST,
    PARTITIONS_PER_TOPIC,
    change_of,
    decisions,
    first_fetch,
    made_up,
    metadata_costs,
    replicas_of,
)
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.store import OPERATIONS_MAX


def test_replicas_are_different_brokers_and_spread_evenly() -> None:
    replicas = [replicas_of(number) for number in range(3000)]
    assert all(len(set(each)) == 3 for each in replicas)
    assert set(Counter(each[0] for each in replicas).values()) == {3000 // BROKERS}
    assert set(Counter(broker for each in replicas for broker in each).values()) == {3 * 3000 // BROKERS}


def test_the_image_holds_what_was_made_up() -> None:
    image = ClusterImage.from_snapshot(made_up(300))
    assert (len(image.topics), image.partition_count, len(image.brokers)) == (10, 300, BROKERS)
    assert decisions(image) == []
    changed, delta = image.apply(change_of(image))
    assert len(delta.changed) == 10
    assert changed.partition_count == 300


def test_costs_are_those_of_what_changes() -> None:
    costs = metadata_costs(3000)
    assert costs.partitions == 3000
    assert costs.lost_partitions == 90, "three replicas of thirty partitions for each broker"
    assert 90 // OPERATIONS_MAX < costs.lost_commits <= 3
    assert costs.stored_bytes > 100 * 3000
    assert costs.image_bytes > 100 * 3000
    assert min(costs.image_s, costs.change_s, costs.look_s, costs.lost_s) > 0


def test_a_first_fetch_names_what_one_follows_at_the_other() -> None:
    image = ClusterImage.from_snapshot(made_up(3000))
    request, encoded = first_fetch(image, LOST, LOST + 1)
    named = sum(len(topic.partitions) for topic in request.topics)
    assert named == sum(
        state.leader == LOST and LOST + 1 in state.replicas
        for topic in image.topics.values()
        for state in topic.partitions
    )
    assert named > 0
    assert len(encoded) > 20 * named
    assert PARTITIONS_PER_TOPIC * len(image.topics) == 3000
