"""What is made of what lies in the directories: who leads, who is in sync, at which epochs, and what is left."""

from dataclasses import replace

import pytest

from odradek.broker.cluster.acls import acl_key, encode_acl
from odradek.broker.cluster.backup import EPOCHS_SKIPPED, Backup
from odradek.broker.cluster.features import ACLS
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    PRODUCER_IDS_KEY,
    NodeState,
    PartitionState,
    TopicState,
    broker_config_key,
    decode_node,
    decode_producer_ids,
    encode_cluster,
    encode_configs,
    encode_producer_ids,
    group_config_key,
    node_key,
    partition_key,
    topic_config_key,
    topic_key,
)
from odradek.broker.cluster.store import Snapshot
from odradek.broker.directories.meta_properties import MetaProperties
from odradek.broker.offline.adopt.directory import Found
from odradek.broker.offline.adopt.partition import PartitionFacts
from odradek.broker.offline.rescue.plan import Directory, NotRebuildable, RebuildPlan, as_backup, entries, make_plan
from odradek.protocol.primitives import uuid_text
from tests.broker.access.rules import acl

CLUSTER_ID = "a-cluster"
ORDERS, OTHER = bytes(range(16)), bytes(range(16, 32))


def facts(
    name: str,
    *,
    end: int = 0,
    last: int = -1,
    epoch: int | None = None,
    topic_id: bytes = ORDERS,
    producer_id: int = -1,
) -> PartitionFacts:
    """`end`: of the log; `last`: the epoch of its last batch; `epoch`: the largest that is named anywhere."""
    topic, _, index = name.rpartition("-")
    largest = last if epoch is None else epoch
    return PartitionFacts(
        topic, int(index), topic_id, leader_epoch=largest, last_epoch=last, producer_id=producer_id, log_end_offset=end
    )


def directory(node_id: int, *partitions: PartitionFacts, number: int = 0, cluster_id: str = CLUSTER_ID) -> Directory:
    known = MetaProperties(cluster_id, node_id, uuid_text(bytes([node_id, number] * 8)))
    return Directory(f"d{node_id}", known, 100 * node_id, Found(is_clean=True, partitions=list(partitions)))


def image_of(plan: RebuildPlan) -> ClusterImage:
    return ClusterImage.from_snapshot(Snapshot(9, entries(plan, 9)))


def directories_of(plan: RebuildPlan, node_id: int) -> tuple[bytes, ...]:
    return decode_node(plan.values[node_key(node_id)], node_id).directory_ids


def state(plan: RebuildPlan, index: int = 0, topic: str = "orders") -> PartitionState:
    found = image_of(plan).partition(topic, index)
    assert found is not None
    return found


# ---------------------------------------------------------------------------------------------------------- partitions
def test_the_replica_with_the_newest_epoch_leads_though_another_log_is_longer() -> None:
    plan = make_plan(
        [
            directory(1, facts("orders-0", end=500, last=3)),
            directory(2, facts("orders-0", end=400, last=5)),
            directory(3, facts("orders-0", end=390, last=5)),
        ],
        None,
    )
    found = state(plan)
    assert (found.leader, found.isr, found.replicas) == (2, (2,), (2, 3, 1))
    assert (found.leader_epoch, found.topic_id) == (5 + EPOCHS_SKIPPED + 300, ORDERS)


def test_those_that_agree_in_epoch_and_end_are_in_sync() -> None:
    plan = make_plan(
        [directory(node_id, facts("orders-0", end=400, last=5, epoch=5 + node_id)) for node_id in (3, 1, 2)], None
    )
    found = state(plan)
    assert (found.leader, found.isr, found.replicas) == (1, (1, 2, 3), (1, 2, 3))
    assert found.leader_epoch == 8 + EPOCHS_SKIPPED + 300, (
        "above the largest that any directory names, also where no batch has it, by the newest revision of all"
    )


def test_empty_logs_agree() -> None:
    plan = make_plan([directory(1, facts("orders-0", epoch=4)), directory(2, facts("orders-0"))], None)
    assert (state(plan).isr, state(plan).leader_epoch) == ((1, 2), 4 + EPOCHS_SKIPPED + 200)


def test_a_log_whose_end_was_deleted_follows_one_that_still_has_it() -> None:
    """Which epoch its last batch had is not known any more: so it is not taken for in sync."""
    plan = make_plan([directory(1, facts("orders-0", end=400)), directory(2, facts("orders-0", end=400, last=5))], None)
    assert (state(plan).leader, state(plan).isr) == (2, (2,))


def test_an_epoch_has_32_bits_though_a_revision_has_more() -> None:
    shared = replace(directory(1, facts("orders-0", end=3, last=8)), recorded_revision=2**40)
    assert state(make_plan([shared], None)).leader_epoch == 8 + EPOCHS_SKIPPED


def test_a_topic_has_all_its_partitions_wherever_they_are() -> None:
    plan = make_plan(
        [
            directory(1, facts("orders-0", end=1, last=0), facts("orders-2", end=1, last=0)),
            directory(2, facts("orders-1", end=1, last=0), facts("orders-2", end=1, last=0)),
        ],
        None,
    )
    topic = image_of(plan).topics["orders"]
    assert [each.replicas for each in topic.partitions] == [(1,), (2,), (1, 2)]
    said = [text for text in plan.remarks if "replica(s)" in text]
    assert said == [f"orders-{index} has 1 replica(s), other partitions of its topic 2" for index in (0, 1)]


def test_a_topic_that_lacks_a_partition_is_left() -> None:
    plan = make_plan([directory(1, facts("orders-0"), facts("orders-2"), facts("more-0", topic_id=OTHER))], None)
    assert [topic.name for topic in plan.topics] == ["more"]
    ((name, reason),) = plan.left.items()
    assert name == f"orders ({uuid_text(ORDERS)})"
    assert reason == "of its 3 partitions no directory has 1: give the directories of all brokers"


def test_two_topics_of_one_name_are_left_both() -> None:
    """One was deleted while a broker was away, and created again: nobody here can tell which."""
    plan = make_plan([directory(1, facts("orders-0")), directory(2, facts("orders-0", topic_id=OTHER))], None)
    assert plan.topics == []
    assert len(plan.left) == 2
    assert all("another topic has this name" in reason for reason in plan.left.values())


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ((facts("orders-0"), facts("more-0")), "directories call it more and orders"),
        ((facts("not a name-0"),), "Topic name is invalid"),
    ],
)
def test_what_else_is_left_and_why(partitions: tuple[PartitionFacts, ...], said: str) -> None:
    plan = make_plan([directory(1, *partitions)], None)
    assert plan.topics == []
    assert said in next(iter(plan.left.values()))


def test_a_partition_with_an_obstacle_is_left() -> None:
    broken = facts("orders-0")
    broken.obstacles.append("it is not readable")
    plan = make_plan([directory(1, broken), directory(2, facts("orders-0", end=3, last=1))], None)
    assert plan.left == {"d1/orders-0": "it is not readable"}
    assert state(plan).replicas == (2,)


# ---------------------------------------------------------------------------------------------------------- directories
def test_a_broker_may_have_several_directories_but_a_partition_in_one_of_them_only() -> None:
    first, second = directory(1, facts("orders-0")), directory(1, facts("orders-1"), number=1)
    plan = make_plan([first, second], None)
    assert directories_of(plan, 1) == (bytes([1, 0] * 8), bytes([1, 1] * 8))
    twice = make_plan([first, directory(1, facts("orders-0"), number=1)], None)
    assert "node 1 has orders-0 twice" in next(iter(twice.left.values()))


def test_directories_of_different_clusters_are_refused() -> None:
    with pytest.raises(NotRebuildable, match="belong to different clusters: d1 to a-cluster, d2 to another"):
        make_plan([directory(1), directory(2, cluster_id="another")], None)


def test_a_directory_and_its_copy_are_refused() -> None:
    with pytest.raises(NotRebuildable, match="d1 and d1 are one directory, or a copy of it"):
        make_plan([directory(1), directory(1)], None)


# ------------------------------------------------------------------------------------------------- what else is known
def test_without_a_backup_all_records_are_kept_and_it_is_said_what_is_lost() -> None:
    plan = make_plan([directory(1, facts("orders-0", producer_id=41_000)), directory(3)], None)
    image = image_of(plan)
    assert image.topics["orders"].configs == {"retention.ms": "-1"}
    assert image.cluster_id == CLUSTER_ID
    assert any("the options of orders are lost" in text for text in plan.remarks)
    assert any("the options that were set for brokers and groups are lost" in text for text in plan.remarks)
    assert decode_producer_ids(plan.values[PRODUCER_IDS_KEY]) == 42_000 + 1_000_000
    assert plan.revision == 300
    assert {node_key(1), node_key(3)} <= plan.values.keys()


def test_that_acls_count_is_not_lost_whoever_registers_first() -> None:
    """Nodes are known without what they can do; until all have said so, everybody could do everything."""
    directories = [directory(1, facts("orders-0"), facts("orders-1")), directory(3)]
    assert image_of(make_plan(directories, None)).features == {ACLS: 1}
    image = image_of(make_plan(directories, backup_of()))
    assert image.features == {ACLS: 1}
    assert list(image.acls.values()) == [acl()], "a backup has them"
    plan = make_plan([directory(1)], None)
    assert any("ACLs are lost" in text for text in plan.remarks)


def backup_of(cluster_id: str = CLUSTER_ID) -> Backup:
    values = {
        CLUSTER_KEY: encode_cluster(cluster_id),
        broker_config_key(1): encode_configs({"log.cleaner.threads": "2"}),
        group_config_key("billing"): encode_configs({"consumer.session.timeout.ms": "50000"}),
        topic_config_key("orders"): encode_configs({"retention.ms": "77"}),
        topic_config_key("gone"): encode_configs({"retention.ms": "78"}),
        node_key(9): NodeState((OTHER,)).encode(),
        node_key(1): NodeState((OTHER,)).encode(),
        PRODUCER_IDS_KEY: encode_producer_ids(5_000_000),
        topic_key("orders"): TopicState(ORDERS, 2).encode(),
        topic_key("gone"): TopicState(OTHER, 1).encode(),
        acl_key(acl()): encode_acl(acl()),
        partition_key("gone", 0): PartitionState(OTHER, (1,), (1,), 1).encode(),
    } | {partition_key("orders", index): PartitionState(ORDERS, (9,), (9,), 9).encode() for index in range(2)}
    return Backup(cluster_id, 50, "then", {key: values[key] for key in sorted(values)})


def test_a_backup_knows_the_options_and_the_directories_know_the_rest() -> None:
    plan = make_plan([directory(1, facts("orders-0", end=3, last=8), facts("orders-1", end=4, last=2))], backup_of())
    image = image_of(plan)
    assert image.topics.keys() == {"orders"}
    assert image.topics["orders"].configs == {"retention.ms": "77"}
    assert (state(plan).replicas, state(plan).leader_epoch) == ((1,), 8 + EPOCHS_SKIPPED + 100)
    assert image.configs_of_broker(1) == {"log.cleaner.threads": "2"}
    assert image.configs_of_group("billing") == {"consumer.session.timeout.ms": "50000"}
    assert (directories_of(plan, 9), directories_of(plan, 1)) == ((OTHER,), (bytes([1, 0] * 8),))
    assert decode_producer_ids(plan.values[PRODUCER_IDS_KEY]) == 6_000_000
    assert plan.remarks == ["the backup has topics that are not taken: gone"]


def test_by_a_backup_it_is_noticed_that_the_last_partition_is_missing() -> None:
    plan = make_plan([directory(1, facts("orders-0"))], backup_of())
    assert "of its 2 partitions no directory has 1" in next(iter(plan.left.values()))


def test_a_backup_of_another_cluster_is_refused() -> None:
    with pytest.raises(NotRebuildable, match="the backup is of cluster another, the directories are of a-cluster"):
        make_plan([directory(1)], backup_of("another"))


def test_for_a_store_it_is_a_backup_that_is_the_same_each_time() -> None:
    def planned() -> RebuildPlan:
        return make_plan([directory(1, facts("orders-0", end=3, last=1))], None)

    found = as_backup(planned())
    assert (found.cluster_id, found.revision, found.values) == (CLUSTER_ID, 100, planned().values)
    assert found.checksum == as_backup(planned()).checksum != ""


def test_a_log_that_ends_before_its_start_is_named() -> None:
    one = directory(1, facts("orders-0", end=3, last=1))
    one.found.log_starts["orders", 0] = 7
    plan = make_plan([one], None)
    assert "orders-0: its log ends before offset 7, up to which records were deleted" in plan.remarks


def test_what_a_backup_goes_without_is_said() -> None:
    known = replace(backup_of(), left_out=("/scram/secret", "/scram/users/SCRAM-SHA-256/a/lice"))
    plan = make_plan([directory(1, facts("orders-0", end=3, last=8), facts("orders-1", end=4, last=2))], known)
    assert any(
        "have no credentials, and cannot log in: a/lice (SCRAM-SHA-256); give" in remark for remark in plan.remarks
    )
