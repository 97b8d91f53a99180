"""The differences between Kafka's answers and ours in the matrix of rights that are meant, each with its reason."""

from collections.abc import Callable
from typing import Final, NamedTuple

from tests.compat.admin_leaves import Leaf
from tests.compat.rights_questions import Question

Known = Callable[[Question, Leaf], bool]


class Rule(NamedTuple):
    """A known difference in the answers of some APIs."""

    apis: tuple[str, ...]
    known: Known
    reason: str


def reason_for(question: Question, leaf: Leaf) -> str | None:
    """Why this difference is none; None: it is one."""
    return next((rule.reason for rule in RULES if question.api in rule.apis and rule.known(question, leaf)), None)


def as_a_replica(question: Question, leaf: Leaf) -> bool:
    del leaf
    return "as a replica" in question.name


def made_at_once(question: Question, leaf: Leaf) -> bool:
    del leaf
    return "that is made" in question.name


def partitions_say_it(question: Question, leaf: Leaf) -> bool:
    """That the group is refused."""
    return 2 <= question.version <= 5 and leaf.path[-1:] == ("topics",) and leaf.theirs == []


def by_cluster_action(question: Question, leaf: Leaf) -> bool:
    del question
    return leaf.theirs == "CLUSTER_AUTHORIZATION_FAILED" or leaf.path[-1:] == ("topics",)


def of_share_groups(question: Question, leaf: Leaf) -> bool:
    del leaf
    return "share groups" in question.name


def by_both_names(question: Question, leaf: Leaf) -> bool:
    """Refused by both, and answered by Kafka in one item and by us in two."""
    return "by name and by id" in question.name and leaf.path == ("responses",)


def without_elections(question: Question, leaf: Leaf) -> bool:
    """Topics of which nothing is told."""
    return "all" in question.name and leaf.path == ("replica_election_results",)


def results_by_feature(question: Question, leaf: Leaf) -> bool:
    return question.version < 2 and leaf.path in (("error_code",), ("results",))


def no_expression(question: Question, leaf: Leaf) -> bool:
    del question
    return leaf.path[-1:] == ("subscribed_topic_regex",) and (leaf.theirs, leaf.ours) == ("", None)


RULES: Final = (
    Rule(
        ("ListOffsets",),
        as_a_replica,
        "what lies behind the high watermark is for brokers, who ask by ClusterAction; Kafka asks for Describe and "
        "answers everybody",
    ),
    Rule(
        ("Fetch",),
        as_a_replica,
        "who may act for the cluster and is no registered broker is told so for the whole request",
    ),
    Rule(
        ("Metadata",),
        made_at_once,
        "a topic that is made by asking for it is there when the answer is out; Kafka's client asks again",
    ),
    Rule(
        ("OffsetFetch",),
        partitions_say_it,
        "aiokafka looks at partitions alone: each says the group's error, up to version 5",
    ),
    Rule(
        ("DescribeQuorum",),
        by_cluster_action,
        "brokers ask the controller for its time, and need no more for that than what they replicate by",
    ),
    Rule(("FindCoordinator",), of_share_groups, "there are no coordinators of share groups here"),
    Rule(
        ("DeleteTopics",), by_both_names, "Kafka answers once where a topic is named twice, by its name and by its id"
    ),
    Rule(("ElectLeaders",), without_elections, "Kafka names the topics of which it elects nothing"),
    Rule(
        ("UpdateFeatures",),
        results_by_feature,
        "before version 2 each feature has its own error, which Kafka 4.3.1 gives to the whole answer",
    ),
    Rule(("ConsumerGroupDescribe",), no_expression, "a member without an expression has none; Kafka's is empty"),
)
