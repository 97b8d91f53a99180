"""The links of a chain, and its gaps, without a cluster."""

from tests.cluster.chain_rounds import chain, longest_gap_ms


def test_the_links_of_a_chain_go_from_topic_to_topic() -> None:
    first, second = chain(("java", "odradek"), ("kafka-python", "librdkafka"))
    assert (first.source, first.target, first.target_partitions) == ("first", "second", 11)
    assert (second.source, second.target, second.target_partitions) == ("second", "third", 31)
    assert first.group != second.group


def test_a_gap_is_between_two_records() -> None:
    assert longest_gap_ms([100, 900, 200, 1_000], 0, 2_000) == 700
    assert longest_gap_ms([100, 900, 200, 1_000], 950, 2_000) == 100
    assert longest_gap_ms([], 0, 1) == 0
