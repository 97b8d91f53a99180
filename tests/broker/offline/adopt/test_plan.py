"""What is taken and what is left, with the reason, for each way in which a directory and its metadata can disagree."""

from dataclasses import replace

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PRODUCER_IDS_KEY, PartitionState, decode_producer_ids
from odradek.broker.cluster.store import Snapshot
from odradek.broker.offline.adopt.directory import Found
from odradek.broker.offline.adopt.kafka_metadata import KafkaMetadata
from odradek.broker.offline.adopt.metadata_records import PartitionChangeRecord, ProducerIdsRecord
from odradek.broker.offline.adopt.partition import PartitionFacts
from odradek.broker.offline.adopt.plan import PRODUCER_IDS_SKIPPED, Plan, entries, make_plan
from odradek.protocol.codec.schema import Message, uuid_text
from tests.broker.offline.adopt.kafka_files import (
    CLUSTER_ID,
    NODE_ID,
    broker_config,
    config,
    group_config,
    id_of,
    topic_records,
)


def facts(name: str, **values: object) -> PartitionFacts:
    topic, _, index = name.rpartition("-")
    found = PartitionFacts(topic, int(index), id_of(topic), leader_epoch=0, segment_count=2, size_bytes=100)
    return replace(found, **values)  # type: ignore[arg-type]


def found(*partitions: PartitionFacts | str, **values: object) -> Found:
    told = [facts(partition) if isinstance(partition, str) else partition for partition in partitions]
    return Found(True, told, **values)  # type: ignore[arg-type]


def known(*records: Message | list[Message]) -> KafkaMetadata:
    metadata = KafkaMetadata()
    for record in records:
        for each in record if isinstance(record, list) else [record]:
            metadata.take(each)
    return metadata


def taken(plan: Plan) -> dict[str, int]:
    return {topic.name: len(topic.partitions) for topic in plan.taken}


def image(plan: Plan, revision: int = 5) -> ClusterImage:
    return ClusterImage.from_snapshot(Snapshot(revision, entries(plan, CLUSTER_ID, revision)))


# -- what is written --------------------------------------------------------------------------------------------------


def test_a_topic_keeps_its_id_and_options_and_has_one_replica_here() -> None:
    metadata = known(
        topic_records("orders", 2, epoch=4),
        config("orders", "cleanup.policy", "compact"),
        config("orders", "retention.ms", "-1"),
        broker_config("", "log.retention.ms", "77"),
        broker_config("1", "log.cleaner.threads", "2"),
        broker_config("2", "log.retention.ms", "99"),
    )
    plan = make_plan(found(facts("orders-0", leader_epoch=9), "orders-1"), metadata, NODE_ID)
    assert (plan.left, plan.remarks) == ({}, [])
    written = image(plan)
    assert written.cluster_id == CLUSTER_ID
    topic = written.topics["orders"]
    assert topic.topic_id == id_of("orders")
    assert topic.replication_factor == 1
    assert topic.configs == {"cleanup.policy": "compact", "retention.ms": "-1"}
    assert topic.partitions == (
        PartitionState(id_of("orders"), (1,), (1,), 1, leader_epoch=9),
        PartitionState(id_of("orders"), (1,), (1,), 1, leader_epoch=4),
    )
    assert written.configs_of_broker(None) == {"log.retention.ms": "77"}
    assert written.configs_of_broker(1) == {"log.cleaner.threads": "2"}
    assert written.configs_of_broker(2) == {}
    (shown,) = plan.taken
    assert (shown.segment_count, shown.size_bytes) == (4, 200)


def test_every_key_is_written_at_the_revision_of_the_adoption() -> None:
    plan = make_plan(found("orders-0", "payments-0"), None, NODE_ID)
    assert {entry.revision for entry in entries(plan, CLUSTER_ID, 42).values()} == {42}


def test_a_log_that_no_epoch_was_ever_written_to_begins_at_0() -> None:
    plan = make_plan(found(facts("orders-0", leader_epoch=-1)), None, NODE_ID)
    assert image(plan).topics["orders"].partitions[0].leader_epoch == 0


def test_producer_ids_go_on_above_all_that_were_given_out() -> None:
    def first_id(producer_id: int, metadata: KafkaMetadata | None) -> int:
        plan = make_plan(found(facts("orders-0", producer_id=producer_id), "orders-1"), metadata, NODE_ID)
        return decode_producer_ids(entries(plan, CLUSTER_ID, 1)[PRODUCER_IDS_KEY].value)

    block = ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=3000)
    assert first_id(2500, known(topic_records("orders", 2), block)) == 3000
    assert first_id(3000, known(topic_records("orders", 2), block)) == 3001
    assert first_id(-1, None) == PRODUCER_IDS_SKIPPED
    assert first_id(999, None) == 1000 + PRODUCER_IDS_SKIPPED
    assert first_id(1000, None) == 2000 + PRODUCER_IDS_SKIPPED


# -- what is left -----------------------------------------------------------------------------------------------------


def test_an_obstacle_in_one_partition_leaves_the_whole_topic() -> None:
    bad = facts("orders-1", obstacles=["it is bad", "it is worse"])
    for metadata in (None, known(topic_records("orders", 2), topic_records("payments"))):
        plan = make_plan(found("orders-0", bad, "payments-0"), metadata, NODE_ID)
        assert taken(plan) == {"payments": 1}
        assert plan.left == {"orders": "of orders-1, it is bad"}


def test_a_gap_in_the_numbers_leaves_the_topic() -> None:
    plan = make_plan(found("orders-1", "orders-3", "payments-0", "payments-2"), None, NODE_ID)
    assert taken(plan) == {}
    assert plan.left["orders"].startswith("of its 4 partitions, 0, 2 are not here; another broker or another directory")
    assert plan.left["payments"].startswith("of its 3 partitions, 1 is not here;")


def test_with_the_metadata_it_is_known_how_many_there_must_be() -> None:
    metadata = known(topic_records("orders", 3), topic_records("payments", 1), topic_records("absent"))
    plan = make_plan(found("orders-0", "orders-1", "payments-0", "payments-1", "ghosts-0"), metadata, NODE_ID)
    assert taken(plan) == {"payments": 1}
    assert plan.left == {
        "orders": "of its 3 partitions, 2 is not here; another broker or another directory of log.dirs may have them",
        "payments-1": "the cluster's metadata does not have it on node 1 (any more)",
        "ghosts": "the cluster's metadata does not know this topic (any more)",
        "absent": "the cluster's metadata knows it, and no directory of it is here",
    }


def test_topics_of_kafkas_own_are_not_missed() -> None:
    plan = make_plan(found(), known(topic_records("__share_group_state", 50)), NODE_ID)
    assert plan.left == {}


def test_a_topic_without_partitions_in_the_metadata_is_left() -> None:
    plan = make_plan(found("orders-0"), known(topic_records("orders")[:1]), NODE_ID)
    assert plan.left["orders"] == "the cluster's metadata gives it no partition"


def test_a_copy_that_was_moved_to_other_brokers_is_left() -> None:
    moved = PartitionChangeRecord(partition_id=1, topic_id=id_of("orders"), replicas=[2])
    plan = make_plan(found("orders-0", "orders-1"), known(topic_records("orders", 2), moved), NODE_ID)
    assert taken(plan) == {}
    assert plan.left.keys() == {"orders-1", "orders"}


def test_partitions_of_two_topics_of_one_name_are_told_apart_by_the_metadata_alone() -> None:
    older = facts("orders-1", topic_id=id_of("older"))
    plan = make_plan(found("orders-0", older), known(topic_records("orders", 1)), NODE_ID)
    assert taken(plan) == {"orders": 1}
    assert plan.left["orders-1"] == (
        f"it is of another topic of this name: its id is {uuid_text(id_of('older'))}, and that of the cluster's "
        f"metadata {uuid_text(id_of('orders'))}"
    )
    plan = make_plan(found("orders-0", older), None, NODE_ID)
    assert plan.left == {
        "orders": "its partitions carry different topic ids, so some are of another topic of this name"
    }


def test_an_obstacle_in_what_is_not_of_the_topic_does_not_count() -> None:
    older = facts("orders-1", topic_id=id_of("older"), obstacles=["it is bad"])
    assert taken(make_plan(found("orders-0", older), known(topic_records("orders")), NODE_ID)) == {"orders": 1}


def test_topics_alike_are_left_all_of_them() -> None:
    twin = facts("twin-0", topic_id=id_of("orders"))
    plan = make_plan(found("orders-0", twin, "a.b-0", "a_b-0", "a-b-0"), None, NODE_ID)
    assert taken(plan) == {"a-b": 1}
    assert plan.left["orders"] == plan.left["twin"] == f"another topic has the same id, {uuid_text(id_of('orders'))}"
    assert "differ in '.' and '_' only" in plan.left["a.b"]
    assert plan.left["a.b"] == plan.left["a_b"]
    assert image(plan).topics.keys() == {"a-b"}


def test_a_name_that_no_topic_has_is_left() -> None:
    plan = make_plan(found(facts("ab cd-0"), facts("..-0")), None, NODE_ID)
    assert "contains one or more characters other than ASCII" in plan.left["ab cd"]
    assert "'..' is not allowed" in plan.left[".."]


def test_what_was_found_beside_partitions_is_told() -> None:
    plan = make_plan(found("orders-0", others={"notes": "no partition"}, remarks=["a file is damaged"]), None, NODE_ID)
    assert plan.left == {"notes": "no partition"}
    assert plan.remarks[0] == "a file is damaged"


# -- what is worth to know --------------------------------------------------------------------------------------------


def test_options_that_cannot_be_kept_are_told_and_the_others_kept() -> None:
    metadata = known(
        topic_records("orders"),
        config("orders", "max.compaction.lag.ms", "5"),
        config("orders", "min.compaction.lag.ms", "9"),
        config("orders", "remote.storage.enable", "true"),
        config("orders", "retention.ms", "1000"),
        config("orders", "segment.bytes", "none"),
        config("orders", "unheard.of", "1"),
        broker_config("", "advertised.listeners", "x"),
        broker_config("", "ssl.keystore.password", "secret"),
    )
    plan = make_plan(found("orders-0"), metadata, NODE_ID)
    assert image(plan).topics["orders"].configs == {"max.compaction.lag.ms": "5", "retention.ms": "1000"}
    assert plan.broker_configs == {}
    assert [remark.partition(" is not taken: ")[0] for remark in plan.remarks] == [
        "the option min.compaction.lag.ms of topic orders",
        "the option remote.storage.enable of topic orders",
        "the option segment.bytes of topic orders",
        "the option unheard.of of topic orders",
        "the option advertised.listeners of all brokers",
        "the option ssl.keystore.password of all brokers",
    ]
    assert "secret" not in str(plan)


def test_options_of_groups_are_kept_but_for_those_of_groups_that_are_not_here() -> None:
    metadata = known(
        topic_records("orders"),
        group_config("billing", "consumer.session.timeout.ms", "50000"),
        group_config("billing", "share.session.timeout.ms", "50000"),
        group_config("shared", "share.session.timeout.ms", "50000"),
        group_config("gone", "consumer.session.timeout.ms", "50000"),
        group_config("gone", "consumer.session.timeout.ms", None),
    )
    plan = make_plan(found("orders-0"), metadata, NODE_ID)
    assert image(plan).group_configs == {"billing": {"consumer.session.timeout.ms": "50000"}}
    assert [remark.partition(" is not taken: ")[0] for remark in plan.remarks] == [
        "the option share.session.timeout.ms of group billing",
        "the option share.session.timeout.ms of group shared",
    ]


def test_without_metadata_everything_is_kept_and_what_looks_compacted_is_named() -> None:
    """Kafka may have kept these records for years: the default would delete them at the next start."""
    by_gaps = facts("ledger-0", has_gaps=True)
    plan = make_plan(found("orders-0", by_gaps, "table-0", compacted={("table", 0)}), None, NODE_ID)
    options, *compacted = plan.remarks
    assert "each gets retention.ms=-1" in options
    assert "--metadata-dir" in options
    topics = image(plan).topics
    assert sorted(topics) == ["ledger", "orders", "table"]
    assert all(topic.configs == {"retention.ms": "-1"} for topic in topics.values())
    assert [remark.partition(":")[0] for remark in compacted] == ["ledger looks compacted", "table looks compacted"]
    assert make_plan(found(by_gaps, compacted={("ledger", 0)}), known(topic_records("ledger")), NODE_ID).remarks == []
    assert make_plan(found(), None, NODE_ID).remarks == []


def test_a_replica_that_was_behind_and_copies_that_are_given_up_are_told() -> None:
    behind = PartitionChangeRecord(partition_id=1, topic_id=id_of("orders"), isr=[2])
    metadata = known(topic_records("orders", 2, replicas=[1, 2]), topic_records("payments"), behind)
    plan = make_plan(found("orders-0", "orders-1", "payments-0"), metadata, NODE_ID)
    lag, copies = plan.remarks
    assert lag.startswith(
        "orders-1 was not in sync on node 1: records that other brokers have acknowledged may be missi"
    )
    assert copies == "from now on there is one replica: orders had more"


def test_remarks_on_partitions_name_them_and_those_of_topics_left_are_not_said() -> None:
    marked = facts("orders-0", remarks=["it is odd"], log_end_offset=5)
    left = facts("bad-0", remarks=["it is odd"], obstacles=["it is bad"])
    metadata = known(topic_records("orders"), topic_records("bad"))
    assert make_plan(found(marked, left, log_starts={("orders", 0): 5}), metadata, NODE_ID).remarks == [
        "orders-0: it is odd"
    ]
    plan = make_plan(found(marked, log_starts={("orders", 0): 6}), known(topic_records("orders")), NODE_ID)
    assert plan.remarks[1].startswith(
        "orders-0: its log ends at offset 5, before offset 6 up to which its records were"
    )


def test_what_the_metadata_has_that_is_not_taken_is_told() -> None:
    metadata = known(topic_records("orders"))
    metadata.take(18)
    metadata.torn_bytes = 7
    torn, rules = make_plan(found("orders-0"), metadata, NODE_ID).remarks
    assert torn.startswith(
        "the cluster's metadata ends with 7 bytes of no whole batch, as after a crash: what was changed"
    )
    assert rules == "access control lists of the cluster are not taken: there are none here"
