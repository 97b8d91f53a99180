"""Arguments of a wrong kind are refused by name, before anything is asked."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigResource
from odradek.client.admin.topics import NewTopic
from odradek.client.topic_partition import TopicPartition
from tests.client.admin_handlers import serve_admin
from tests.client.scripted_broker import scripted_cluster

pytestmark = pytest.mark.virtual_time

PARTITION = TopicPartition("orders", 0)
CASES: list[tuple[Callable[[Any], Awaitable[object]], str]] = [
    (lambda admin: admin.describe_topics("orders"), "names must be an iterable of topics' names, not 'orders' (str)"),
    (lambda admin: admin.describe_topics(5), "names must be an iterable of topics' names, not 5 (int)"),
    (lambda admin: admin.describe_topics([b"o"]), "names must be topics' names (str), and has b'o' (bytes)"),
    (lambda admin: admin.describe_topics([["o"]]), "names must be topics' names (str), and has ['o'] (list)"),
    (lambda admin: admin.describe_topic(None), "name must be a topic's name (str), not None"),
    (lambda admin: admin.create_topics(["orders"]), "topics must be NewTopic objects, and has 'orders' (str)"),
    (lambda admin: admin.create_topics(NewTopic("o")), "topics must be an iterable of NewTopic objects, not NewTopic"),
    (lambda admin: admin.create_topic(b"orders"), "the name of a NewTopic must be a topic's name (str), not b'orders'"),
    (lambda admin: admin.create_topic("o", "3"), "the partitions of a NewTopic must be a whole number, not '3' (str)"),
    (lambda admin: admin.create_topic("o", 3, 1.0), "the replication_factor of a NewTopic must be a whole number"),
    (lambda admin: admin.create_topic("o", 3, 1, [("a", "b")]), "the configs of a NewTopic must be a mapping of texts"),
    (lambda admin: admin.delete_topics("orders"), "names must be an iterable of topics' names"),
    (lambda admin: admin.delete_topics([5]), "names must be topics' names (str), and has 5"),
    (lambda admin: admin.delete_topics(topic_ids=[5]), "topic_ids must be topic ids (str), and has 5"),
    (lambda admin: admin.delete_topic(5), "name must be a topic's name (str), not 5"),
    (lambda admin: admin.create_partitions({b"o": 3}), "counts must be topics' names (str), and has b'o'"),
    (lambda admin: admin.create_partitions({"o": "3"}), "counts must be whole numbers by topic, and has '3'"),
    (lambda admin: admin.create_partitions([("o", 3)]), "counts must be a mapping by topics' names"),
    (lambda admin: admin.describe_configs(["orders"]), "resources must be ConfigResource objects, and has 'orders'"),
    (
        lambda admin: admin.describe_configs([ConfigResource.topic("o")], "retention.ms"),
        "names must be a list of options' names, or None, not 'retention.ms'",
    ),
    (lambda admin: admin.alter_configs({"orders": []}), "changes must be ConfigResource objects, and has 'orders'"),
    (
        lambda admin: admin.alter_configs({ConfigResource.topic("o"): {"retention.ms": "5"}}),
        "the changes of a resource must be ConfigChange objects, and has 'retention.ms'",
    ),
    (lambda admin: admin.list_offsets([PARTITION]), "timestamps must be a mapping by TopicPartition objects"),
    (
        lambda admin: admin.list_offsets({("orders", 0): -1}),
        "timestamps must be TopicPartition(topic, partition) of a str and a whole number, and has ('orders', 0)",
    ),
    (
        lambda admin: admin.list_offsets({TopicPartition(cast(Any, b"o"), 0): -1}),
        "and has TopicPartition(topic=b'o', partition=0)",
    ),
    (lambda admin: admin.list_offsets({PARTITION: "latest"}), "timestamps must be whole numbers by partition"),
    (lambda admin: admin.delete_records({PARTITION: None}), "before must be offsets (whole numbers) by partition"),
    (lambda admin: admin.describe_log_dirs(["1"]), "node_ids must be broker ids (whole numbers), and has '1'"),
    (lambda admin: admin.describe_log_dirs([1], ["o"]), "partitions must be TopicPartition(topic, partition) of"),
    (lambda admin: admin.elect_leaders([("o", 0)]), "partitions must be TopicPartition(topic, partition) of"),
    (lambda admin: admin.list_partition_reassignments(["o"]), "partitions must be TopicPartition(topic, partition) of"),
    (lambda admin: admin.alter_partition_reassignments({"o": [1]}), "targets must be TopicPartition(topic, partition)"),
    (lambda admin: admin.alter_partition_reassignments({PARTITION: 1}), "a target must be a list of broker ids"),
    (lambda admin: admin.alter_partition_reassignments({PARTITION: ["1"]}), "a target must be broker ids"),
    (lambda admin: admin.unregister_broker("1"), "node_id must be a broker's id, a whole number, not '1'"),
    (lambda admin: admin.list_groups("Stable"), "states must be an iterable of groups' states, not 'Stable' (str)"),
    (lambda admin: admin.list_groups(types=[1]), "types must be groups' types (str), and has 1"),
    (lambda admin: admin.describe_groups("a"), "group_ids must be an iterable of groups' ids, not 'a' (str)"),
    (lambda admin: admin.describe_group(b"a"), "group_id must be a group's id (str), not b'a'"),
    (lambda admin: admin.delete_groups([b"a"]), "group_ids must be groups' ids (str), and has b'a'"),
    (lambda admin: admin.remove_group_members("a", ["m"]), "members must be MemberToRemove or MemberDescription"),
    (lambda admin: admin.remove_group_members("a", [], reason=5), "reason must be a text, or None, not 5"),
    (lambda admin: admin.list_transactions("Ongoing"), "states must be an iterable of transactions' states, not"),
    (lambda admin: admin.list_transactions([1]), "states must be transactions' states (str), and has 1"),
    (
        lambda admin: admin.list_transactions(producer_ids=["1"]),
        "producer_ids must be producer ids (whole numbers)",
    ),
    (
        lambda admin: admin.list_transactions(duration_ms=1.5),
        "duration_ms must be a whole number of milliseconds",
    ),
    (
        lambda admin: admin.list_transactions(pattern=b"a"),
        "pattern must be a regular expression (str), or None",
    ),
    (lambda admin: admin.describe_transactions("a"), "transactional_ids must be an iterable of transactional ids, not"),
    (lambda admin: admin.describe_transaction(5), "transactional_id must be a transactional id (str), not 5"),
    (lambda admin: admin.end_transaction(5, 1, 2, commit=True), "transactional_id must be a transactional id (str)"),
    (
        lambda admin: admin.end_transaction("a", "1", 2, commit=True),
        "producer_id must be a producer id (a whole number)",
    ),
    (
        lambda admin: admin.end_transaction("a", 1, None, commit=True),
        "producer_epoch must be a producer's epoch (a whole",
    ),
    (lambda admin: admin.end_transaction("a", 1, 2, commit="no"), "commit must be True or False, not 'no' (str)"),
    (lambda admin: admin.fence_producers([None]), "transactional_ids must be transactional ids (str), and has None"),
    (lambda admin: admin.describe_producers(["o"]), "partitions must be TopicPartition(topic, partition) of a str"),
    (lambda admin: admin.abort_transaction(("o", 0), 1, 2, 3), "partition must be TopicPartition(topic, partition) of"),
    (lambda admin: admin.abort_transaction(PARTITION, "1", 2, 3), "producer_id must be a whole number, not '1' (str)"),
    (
        lambda admin: admin.abort_transaction(PARTITION, 1, 2, None),
        "coordinator_epoch must be a whole number",
    ),
    (lambda admin: admin.list_group_offsets([5]), "wanted must be groups' ids (str), and has 5"),
    (lambda admin: admin.list_group_offsets({"a": ["o"]}), "wanted must be TopicPartition(topic, partition) of a str"),
    (lambda admin: admin.group_offsets(5), "group_id must be a group's id (str), not 5"),
    (lambda admin: admin.alter_group_offsets("a", [PARTITION]), "offsets must be a mapping by TopicPartition objects"),
    (
        lambda admin: admin.alter_group_offsets("a", {PARTITION: "5"}),
        "an offset must be a whole number, or a Com",
    ),
    (lambda admin: admin.delete_group_offsets("a", ["o"]), "partitions must be TopicPartition(topic, partition) of"),
    (lambda admin: admin.list_topics(timeout_ms="5"), "timeout_ms must be a number of milliseconds, not '5'"),
]


@pytest.mark.parametrize(("call", "said"), CASES, ids=[said[:60] for _, said in CASES])
async def test_an_argument_of_a_wrong_kind_is_named(call: Callable[[Any], Awaitable[object]], said: str) -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment) as admin:
            before = len(scripted.exchanges)
            with pytest.raises(TypeError, match=re.escape(said)):
                await call(admin)
            assert len(scripted.exchanges) == before


@pytest.mark.parametrize("timeout_ms", [float("nan"), float("inf")])
async def test_a_timeout_that_is_no_number_is_refused(timeout_ms: float) -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment) as admin:
            with pytest.raises(ValueError, match="timeout_ms must be a finite number of milliseconds"):
                await admin.list_topics(timeout_ms=timeout_ms)
