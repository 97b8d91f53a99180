"""The differences between Kafka's answers to admin requests and ours that are meant, each with its reason.

A rule says for one difference (`Leaf`) of the answers to a step, or of the states after it, whether it is the known
one. Those of single questions stand in test_answers_like_kafka.py; here are those that random requests come to.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from protocol.schema import ZERO_UUID
from tests.compat.admin_leaves import Leaf
from tests.compat.admin_requests import APPEND, BROKER, DELETE, SET, SUBTRACT, TOPIC, Step

Known = Callable[[Step, Leaf], bool]


class Rule(NamedTuple):
    """A known difference in the answers of some APIs."""

    apis: tuple[str, ...]
    known: Known
    reason: str


def reason_for(step: Step, leaf: Leaf) -> str | None:
    """Why this difference is none; None: it is one."""
    return next((rule.reason for rule in RULES if step.api in rule.apis and rule.known(step, leaf)), None)


def codes(theirs: str, ours: str) -> Known:
    """These two errors of one item."""
    return lambda step, leaf: leaf.path[-1:] == ("error_code",) and (leaf.theirs, leaf.ours) == (theirs, ours)


def answered_each_time(step: Step, leaf: Leaf) -> bool:
    """The same items, of which Kafka has each once."""
    if not (isinstance(leaf.theirs, dict | list) and isinstance(leaf.ours, list)):
        return False
    theirs: list[Any] = list(leaf.theirs.values()) if isinstance(leaf.theirs, dict) else leaf.theirs
    return len(theirs) < len(leaf.ours) and all(item in leaf.ours for item in theirs)


def deleted_by_name_and_by_id(step: Step, leaf: Leaf) -> bool:
    """Refused by both, and answered by Kafka in one item and by us in two."""
    items = [item for item in (leaf.theirs, leaf.ours) if item is not None]
    return all(isinstance(item, dict) and item["error_code"] == "INVALID_REQUEST" for item in items)


def names_beside_ids(step: Step, leaf: Leaf) -> bool:
    """Only what was asked for by id."""
    named = [topic.topic_id == ZERO_UUID for topic in step.request.topics or []]
    return any(named) and not all(named)


def too_many_partitions(step: Step, leaf: Leaf) -> bool:
    return any(topic.num_partitions > 10_000 for topic in step.request.topics)


def named_twice(step: Step, leaf: Leaf) -> bool:
    """In a request whose answer has a partition once, although it was asked for more often."""
    indexes = [
        (topic.name, partition.partition_index) for topic in step.request.topics for partition in topic.partitions
    ]
    return len(set(indexes)) < len(indexes)


def an_unknown_type(step: Step, leaf: Leaf) -> bool:
    return any(resource.resource_type not in (TOPIC, BROKER) for resource in step.request.resources)


def options(step: Step) -> list[tuple[int, str, str, str | None]]:
    """Type, resource, option and value of all that a request sets."""
    resources = getattr(step.request, "resources", [])
    topics = getattr(step.request, "topics", [])
    return [
        *((each.resource_type, each.resource_name, one.name, one.value) for each in resources for one in each.configs),
        *((TOPIC, each.name, one.name, one.value) for each in topics for one in each.configs),
    ]


def an_unknown_operation(step: Step, leaf: Leaf) -> bool:
    operations = {one.config_operation for each in step.request.resources for one in each.configs}
    return not operations <= {SET, DELETE, APPEND, SUBTRACT} and (
        leaf.ours == "INVALID_REQUEST" or leaf.theirs == "UNKNOWN_SERVER_ERROR"
    )


def no_number(step: Step, leaf: Leaf) -> bool:
    return leaf.ours == "INVALID_CONFIG" and any(value == "NaN" for _, _, _, value in options(step))


def removes_min_insync(step: Step, leaf: Leaf) -> bool:
    """By naming the other options of all brokers, or by deleting it, there or of one broker."""
    if (leaf.theirs, leaf.ours) != ("INVALID_CONFIG", "NONE"):
        return False
    if step.api == "IncrementalAlterConfigs":
        return any((kind, name) == (BROKER, "min.insync.replicas") for kind, _, name, _ in options(step))
    left = {name for kind, resource, name, _ in options(step) if (kind, resource) == (BROKER, "")}
    return "min.insync.replicas" not in left


ALTERATIONS = ("AlterConfigs", "IncrementalAlterConfigs")

RULES: Final = (
    Rule(
        ("CreateTopics", "CreatePartitions", "DeleteTopics", "DeleteRecords", "ListOffsets"),
        answered_each_time,
        "Kafka answers once what a request names twice; we answer each time, so that nothing seems unanswered",
    ),
    Rule(
        ("DeleteTopics",),
        deleted_by_name_and_by_id,
        "Kafka answers once where a topic is named twice, by its name and by its id",
    ),
    Rule(
        ("IncrementalAlterConfigs",),
        codes("UNKNOWN_SERVER_ERROR", "INVALID_REQUEST"),
        "an operation that does not exist is the client's mistake, and Kafka lets it fall through",
    ),
    Rule(
        ("IncrementalAlterConfigs",),
        an_unknown_operation,
        "the same: Kafka may come to another mistake before, and lets the request's other topics fall through, too",
    ),
    Rule(
        ("IncrementalAlterConfigs",),
        codes("UNKNOWN_SERVER_ERROR", "INVALID_CONFIG"),
        "Kafka stumbles over lists of a broker that have no default",
    ),
    Rule(
        ("Metadata",),
        codes("UNKNOWN_SERVER_ERROR", "INVALID_REQUEST"),
        "a topic without name and id is the client's mistake, and Kafka lets it fall through",
    ),
    Rule(
        ALTERATIONS,
        codes("INVALID_REQUEST", "INVALID_CONFIG"),
        "a wrong value of a broker's option is no malformed request (KAFKA-13609)",
    ),
    Rule(("Metadata",), names_beside_ids, "Kafka leaves topics that are asked for by name unanswered beside one by id"),
    Rule(
        ("DeleteRecords",),
        named_twice,
        "of a partition that is named twice Kafka takes the last offset, we both",
    ),
    Rule(
        ("AlterPartitionReassignments",),
        named_twice,
        "Kafka looks at a partition that is named twice as it was before, and may never end what it begins so; we as "
        "the first time has left it",
    ),
    Rule(
        ("DescribeTopicPartitions",),
        lambda step, leaf: any(not topic.name for topic in step.request.topics),
        "Kafka answers UNKNOWN_SERVER_ERROR for every topic where one name is empty",
    ),
    Rule(
        ("CreateTopics", *ALTERATIONS),
        no_number,
        "Kafka takes NaN for a ratio, since it is neither below 0 nor above 1",
    ),
    Rule(
        ALTERATIONS,
        removes_min_insync,
        "Kafka's controller must have min.insync.replicas set for all brokers; here it has a default to go back to",
    ),
    Rule(
        ("DescribeConfigs",),
        lambda step, leaf: "node.id" in leaf.path,
        "Kafka's node.id has no default",
    ),
    Rule(
        ("DescribeConfigs",),
        an_unknown_type,
        "Kafka refuses a whole request in which one resource is of a type that does not exist",
    ),
    Rule(
        ("CreateTopics",),
        lambda step, leaf: {"c.c", "c_c"} <= {topic.name for topic in step.request.topics},
        "Kafka does not see that two topics of one request collide in the names of their metrics",
    ),
    Rule(
        ("CreateTopics",),
        too_many_partitions,
        "Kafka counts the partitions of a whole request before it looks at anything else, we those of each topic",
    ),
)
