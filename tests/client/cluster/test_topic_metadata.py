"""One answer about a topic becomes partitions in order, or is refused; the newer leader epoch of each partition counts.

By answers made by hand: ordinary ones, late ones of the same topic, ones of a topic created anew, and nonsense.
"""

import pytest

from odradek.client.cluster.topic_metadata import NO_EPOCH, Node, TopicMetadata, merged, nodes_of
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.messages.metadata import MetadataResponseTopic
from odradek.protocol.messages.produce import NodeEndpoint
from tests.client.metadata_answers import ID_A, ID_B, broker, partition, topic

NODES = nodes_of([broker(1), broker(2), broker(3)])


def take(answer: MetadataResponseTopic, known: TopicMetadata | None = None, api_version: int = 12) -> TopicMetadata:
    found = merged("t", answer, known, NODES, api_version)
    assert found is not None
    return found


def test_partitions_stand_by_index_with_what_is_precomputed() -> None:
    found = take(
        topic("t", partitions=[partition(2, 3, 7), partition(0, 1, 5, replicas=[1, 2]), partition(1, -1, 6, error=5)])
    )
    assert found.partition_count == 3
    assert found.available == (0, 2)
    assert found.leaders == ((1, 5), (-1, 6), (3, 7))
    assert not found.is_complete
    assert take(topic("t", 1, 2)).is_complete


def test_the_older_epoch_of_a_partition_is_ignored_each_by_itself() -> None:
    known = take(topic("t", (1, 5), (1, 5), (1, 5)))
    assert take(topic("t", (2, 4), (2, 5), (2, 6)), known).leaders == ((1, 5), (2, 5), (2, 6))


def test_a_newer_epoch_without_leader_counts_and_an_older_one_keeps_the_leader() -> None:
    known = take(topic("t", (1, 5), (1, 5)))
    assert take(topic("t", (-1, 6), (-1, 4)), known).leaders == ((-1, 6), (1, 5))


def test_another_topic_id_starts_anew() -> None:
    known = take(topic("t", (1, 5), (1, 5), (1, 5)))
    found = take(topic("t", (2, 0), topic_id=ID_B), known)
    assert found.leaders == ((2, 0),)
    assert found.topic_id == ID_B


def test_an_answer_without_id_keeps_the_id_and_compares_epochs() -> None:
    known = take(topic("t", (1, 5)))
    found = take(topic("t", (2, 4), topic_id=ZERO_UUID), known)
    assert (found.leaders, found.topic_id) == (((1, 5),), ID_A)


def test_partitions_do_not_vanish_from_a_topic_with_the_same_id() -> None:
    known = take(topic("t", (1, 0), (2, 0), (3, 0)))
    assert take(topic("t", (2, 1)), known).leaders == ((2, 1), (2, 0), (3, 0))


def test_without_topic_ids_fewer_partitions_are_taken_as_it_may_be_another_topic() -> None:
    known = take(topic("t", (1, 0), (2, 0), topic_id=ZERO_UUID))
    assert take(topic("t", (2, 1), topic_id=ZERO_UUID), known).leaders == ((2, 1),)


@pytest.mark.parametrize("api_version", [7, 8])
def test_epochs_of_brokers_before_kafka_2_4_do_not_count(api_version: int) -> None:
    known = take(topic("t", (1, 5)))
    assert take(topic("t", (2, 4)), known, api_version).leaders == ((2, NO_EPOCH),)


def test_an_answer_without_epoch_is_believed() -> None:
    known = take(topic("t", (1, 5)))
    found = take(topic("t", (2, -1)), known)
    assert found.leaders == ((2, NO_EPOCH),)
    assert take(topic("t", (3, 0)), found).leaders == ((3, 0),)


def test_a_leader_that_is_no_known_broker_is_none() -> None:
    found = take(topic("t", (9, 5), (2, 5), (-7, 5)))
    assert found.leaders == ((-1, 5), (2, 5), (-1, 5))
    assert found.without_leaders_outside({1}).leaders == ((-1, 5), (-1, 5), (-1, 5))
    assert found.without_leaders_outside(NODES) is found


def test_epochs_can_be_forgotten() -> None:
    known = take(topic("t", (1, 5))).without_epochs()
    assert known.leaders == ((1, NO_EPOCH),)
    assert take(topic("t", (2, 0)), known).leaders == ((2, 0),)


@pytest.mark.parametrize("indexes", [[], [1], [0, 0], [0, 2], [-1, 0], [-1, 1], [0, 2**31 - 1], [-(2**31)]])
def test_partitions_not_numbered_from_0_without_gaps_are_no_answer(indexes: list[int]) -> None:
    answer = topic("t", partitions=[partition(index, 1) for index in indexes])
    assert merged("t", answer, None, NODES, 12) is None


@pytest.mark.parametrize("code", [5, 9, 72, 9999])
def test_an_error_of_a_partition_that_has_a_leader_does_not_matter(code: int) -> None:
    """Such as REPLICA_NOT_AVAILABLE: it is about others than the leader."""
    found = take(topic("t", partitions=[partition(0, 1, error=code)]))
    assert found.available == (0,)


@pytest.mark.parametrize(("host", "port"), [("", 9092), ("h", 0), ("h", -1), ("h", 65536)])
def test_a_broker_that_nobody_can_connect_to_is_left_out(host: str, port: int) -> None:
    endpoint = NodeEndpoint(node_id=1, host=host, port=port)
    assert nodes_of(
        [endpoint, NodeEndpoint(node_id=-1, host="h", port=1), NodeEndpoint(node_id=2, host="h", port=1)]
    ) == {2: Node(2, "h", 1)}
