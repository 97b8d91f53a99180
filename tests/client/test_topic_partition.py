"""The name of a partition: shown as Kafka shows it, and interchangeable with a plain tuple."""

from odradek.client.topic_partition import TopicPartition


def test_it_is_shown_as_topic_dash_partition_and_equals_a_tuple() -> None:
    partition = TopicPartition("orders", 3)
    assert str(partition) == "orders-3"
    assert {partition: 1}[("orders", 3)] == 1  # type: ignore[index]
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 1)]) == [("a", 1), ("b", 0)]
