"""One partition: when it is due, and how long it keeps to its leader after a replica has failed."""

from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.position import LogTruncated, Position
from odradek.client.topic_partition import TopicPartition

P = TopicPartition("orders", 0)


def test_after_a_replica_failed_none_is_wanted_for_a_while() -> None:
    position = Position(P, Start.at_offset(3, 2), None)
    assert not position.shuns_replicas(0)
    position.replica_id, position.replica_until_ms = 4, 100
    assert not position.shuns_replicas(0)
    position.leave_replica(50)
    assert position.replica_id == -1
    assert position.shuns_replicas(10_049)
    assert not position.shuns_replicas(10_050)


def test_it_begins_with_the_epoch_that_is_known() -> None:
    position = Position(P, Start.at_offset(3, 2), None)
    assert (position.fetch_offset, position.last_fetched_epoch) == (3, 2)


def test_a_truncated_log_is_told_with_both_offsets() -> None:
    error = LogTruncated(P, 8, 6)
    assert (error.offset, error.diverging_offset) == (8, 6)
    assert "other records from offset 6 on" in str(error.fresh())
