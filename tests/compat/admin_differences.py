"""The differences between Kafka's answers to admin requests and ours that are meant, each with its reason.

A rule says for one difference (`Leaf`) of the answers to a step, or of the states after it, whether it is the known
one. Those of single questions stand in test_answers_like_kafka.py; here are those that random requests come to.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from odradek.protocol.codec.schema import ZERO_UUID
from tests.compat.admin_leaves import Leaf, as_dict, as_list
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


def codes(theirs: str, ours: str, *, of_a_broker: bool = False) -> Known:
    """These two errors of one item; or of one that is a broker's options."""

    def known(step: Step, leaf: Leaf) -> bool:
        is_right = is_of_a_broker(leaf) or not of_a_broker
        return is_right and leaf.path[-1:] == ("error_code",) and (leaf.theirs, leaf.ours) == (theirs, ours)

    return known


def is_of_a_broker(leaf: Leaf) -> bool:
    return any(part.startswith(f"{BROKER}/") for part in leaf.path)


def answered_each_time(step: Step, leaf: Leaf) -> bool:
    """The same items, of which Kafka has each once."""
    named, theirs, ours = as_dict(leaf.theirs), as_list(leaf.theirs), as_list(leaf.ours)
    once = theirs if named is None else list(named.values())
    if once is None or ours is None:
        return False
    return len(once) < len(ours) and all(item in ours for item in once)


def deleted_by_name_and_by_id(step: Step, leaf: Leaf) -> bool:
    """Refused by both, and answered by Kafka in one item and by us in two."""
    items = [as_dict(item) for item in (leaf.theirs, leaf.ours) if item is not None]
    return all(item is not None and item["error_code"] == "INVALID_REQUEST" for item in items)


def names_beside_ids(step: Step, leaf: Leaf) -> bool:
    """Only what was asked for by id."""
    by_name = {bool(topic.topic_id == ZERO_UUID) for topic in step.request.topics or ()}
    return by_name == {True, False}


def too_many_partitions(step: Step, leaf: Leaf) -> bool:
    return any(topic.num_partitions > 10_000 for topic in step.request.topics)


def named_twice(step: Step, leaf: Leaf) -> bool:
    """In a request whose answer has a partition once, although it was asked for more often."""
    indexes = [
        (topic.name, partition.partition_index) for topic in step.request.topics for partition in topic.partitions
    ]
    return len(set(indexes)) < len(indexes)


def an_empty_name(step: Step, leaf: Leaf) -> bool:
    return any(not topic.name for topic in step.request.topics)


def colliding_names(step: Step, leaf: Leaf) -> bool:
    return {"c.c", "c_c"} <= {topic.name for topic in step.request.topics}


def of_the_node_id(step: Step, leaf: Leaf) -> bool:
    return "node.id" in leaf.path


def a_value_as_sent(step: Step, leaf: Leaf) -> bool:
    sent = {one.value for topic in step.request.topics for one in topic.configs}
    return "configs" in leaf.path and leaf.path[-1] == "value" and leaf.theirs in sent


def an_unknown_type(step: Step, leaf: Leaf) -> bool:
    return any(resource.resource_type not in (TOPIC, BROKER) for resource in step.request.resources)


def an_unknown_operation(step: Step, leaf: Leaf) -> bool:
    operations = {one.config_operation for each in step.request.resources for one in each.configs}
    return not operations <= {SET, DELETE, APPEND, SUBTRACT} and (
        leaf.ours == "INVALID_REQUEST" or leaf.theirs == "UNKNOWN_SERVER_ERROR"
    )


def removes_min_insync(step: Step, leaf: Leaf) -> bool:
    """By naming the other options of all brokers, or by deleting it, there or of one broker."""
    if (leaf.theirs, leaf.ours) != ("INVALID_CONFIG", "NONE") or not is_of_a_broker(leaf):
        return False
    if step.api == "IncrementalAlterConfigs":
        return any(one.name == "min.insync.replicas" for each in step.request.resources for one in each.configs)
    return any(each.resource_name == "" for each in step.request.resources)


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
        an_unknown_operation,
        "an operation that does not exist is the client's mistake; Kafka lets it fall through, and with it the other "
        "topics of the request, unless it comes to another mistake before",
    ),
    Rule(
        ("IncrementalAlterConfigs",),
        codes("UNKNOWN_SERVER_ERROR", "INVALID_CONFIG", of_a_broker=True),
        "Kafka stumbles over lists of a broker that have no default",
    ),
    Rule(
        ("Metadata",),
        codes("UNKNOWN_SERVER_ERROR", "INVALID_REQUEST"),
        "a topic without name and id is the client's mistake, and Kafka lets it fall through",
    ),
    Rule(
        ALTERATIONS,
        codes("INVALID_REQUEST", "INVALID_CONFIG", of_a_broker=True),
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
        "Kafka looks at a partition that is named twice as it was before, and does not end what it begins so while we "
        "look; we look at it as the first time has left it",
    ),
    Rule(
        ("DescribeTopicPartitions",),
        an_empty_name,
        "Kafka answers UNKNOWN_SERVER_ERROR for every topic where one name is empty",
    ),
    Rule(
        ALTERATIONS,
        removes_min_insync,
        "Kafka's controller must have min.insync.replicas set for all brokers; here it has a default to go back to",
    ),
    Rule(
        ("DescribeConfigs",),
        of_the_node_id,
        "Kafka's node.id has no default",
    ),
    Rule(
        ("DescribeConfigs",),
        an_unknown_type,
        "Kafka refuses a whole request in which one resource is of a type that does not exist",
    ),
    Rule(
        ("CreateTopics",),
        colliding_names,
        "Kafka does not see that two topics of one request collide in the names of their metrics",
    ),
    Rule(
        ("CreateTopics",),
        a_value_as_sent,
        "Kafka tells an option as it was sent, and describes it later as we do at once",
    ),
    Rule(
        ("CreateTopics",),
        too_many_partitions,
        "Kafka counts the partitions of a whole request before it looks at anything else, we those of each topic",
    ),
)
