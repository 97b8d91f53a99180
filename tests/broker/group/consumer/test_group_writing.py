"""What a consumer group has written, and what it does when the log refuses that."""

from odradek.broker.group.consumer.group_values import Key, Kind
from odradek.broker.group.consumer.requests import ConsumerHeartbeat
from odradek.protocol.stored.consumer_group import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from tests.broker.group.consumer.rig import (
    REBALANCE_MS,
    SESSION_MS,
    Rig,
    joining,
    parts,
    two_members,
)


def test_a_refused_join_leaves_nothing_behind() -> None:
    rig, _ = two_members()
    before = rig.values()
    rig.send(joining("c", "orders"))
    assert "c" in rig.state.members
    rig.refuse()
    assert rig.values() == before
    rig.reload()
    assert rig.values() == before


def test_a_refused_leave_keeps_the_member_and_its_session() -> None:
    rig, _ = two_members()
    rig.send(ConsumerHeartbeat("a", -1))
    rig.refuse()
    assert set(rig.state.members) == {"a", "b"}
    rig.later(SESSION_MS)
    rig.commit()
    assert rig.group.is_empty


def test_a_refused_expulsion_comes_again() -> None:
    rig, _ = two_members()
    rig.later(SESSION_MS)
    rig.refuse()
    assert set(rig.state.members) == {"a", "b"}
    rig.later(SESSION_MS)
    rig.commit()
    assert rig.group.is_empty


def test_a_refused_revocation_is_asked_for_again() -> None:
    rig, topic_id = two_members()
    rig.send(ConsumerHeartbeat("a", 2, owned=parts(topic_id, 0, 1)))
    rig.send(ConsumerHeartbeat("b", 3))
    assert rig.state.owner(topic_id, 2) == "b"
    rig.refuse()
    assert rig.state.owner(topic_id, 2) == "a"
    rig.later(REBALANCE_MS)
    assert "a" not in rig.state.members, "its time-out runs"


def test_topics_that_a_refused_heartbeat_has_seen_are_looked_at_again() -> None:
    rig = Rig()
    topic_id = rig.topics.put("orders", 1)
    rig.join("a", "orders")
    rig.topics.put("orders", 2)
    rig.group.metadata_changed(["orders"], rig.now)
    rig.send(ConsumerHeartbeat("a", 2))
    rig.refuse()
    assert rig.beat("a", 2).assigned == {topic_id: (0, 1)}


def test_metadata_of_kafka_4_0_is_deleted_when_the_epoch_is_raised() -> None:
    rig, _ = two_members()
    key, value = ConsumerGroupPartitionMetadataKey(group_id="billing"), ConsumerGroupPartitionMetadataValue(topics=[])
    rig.group.replay(key, value)
    rig.send(ConsumerHeartbeat("a", -1))
    assert rig.told(rig.commit())[Key(Kind.PARTITION_METADATA)] is None
