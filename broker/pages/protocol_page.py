"""docs/protocol-support.md, made from the rows of served.py: `python -m odradek.broker.pages.protocol_page` prints it.

What an API does and what its versions brought stands in the docstring of its handler's module; it is taken from there.
"""

import inspect
import sys

from odradek.broker.handling.context import Api
from odradek.broker.served import SERVED

# Those that can be asked for are in tests/compat/test_answers_like_kafka.py, with both answers, and, of clusters, in
# test_cluster_answers_like_kafka.py; those that only random requests come to are rules in admin_differences.py.
DEVIATIONS = (
    "Auto-creation is synchronous: Metadata answers a topic that it has just created with its partitions, where Kafka "
    "answers UNKNOWN_TOPIC_OR_PARTITION once.",
    "CreateTopics and other changes with a timeout of 0 or less are begun and answered REQUEST_TIMED_OUT; Kafka drops "
    "them.",
    "A topic or partition named twice in one request of CreateTopics, CreatePartitions, DeleteTopics or ListOffsets is "
    "refused each time; Kafka refuses it once.",
    "DeleteRecords waits, up to its timeout, for replicas on live brokers as Kafka does, and for all who may be "
    "elected, live or not; all of them have the new log start on disk then. See "
    "[the decision](decisions/010-what-an-answer-promises.md).",
    "ListOffsets for the largest timestamp (-3) ignores deleted records; Kafka may answer an offset before the log "
    "start.",
    "By default (`record.validation=header`) records inside a batch are not looked at, so that batches are taken that "
    "contradict their header, and a wrong largest timestamp stays as it is, which lookups by time rely on; see "
    "[the decision](decisions/005-record-validation.md).",
    "Batches that Kafka accepts and this broker refuses: a producer id without an epoch (INVALID_RECORD), the "
    "LogAppendTime bit set by a client, which Kafka clears (INVALID_TIMESTAMP), and where records are looked at gaps "
    "between their offsets (INVALID_RECORD).",
    "Of the records for which a batch is refused at most 1,000 are named (KIP-467); Kafka names all.",
    "Batches that both refuse, with another error: a magic above 2 is INVALID_RECORD (Kafka: CORRUPT_MESSAGE, at which "
    "clients send it again), a codec that does not exist UNSUPPORTED_COMPRESSION_TYPE (UNKNOWN_SERVER_ERROR), a "
    "payload that cannot be decompressed, with `full`, CORRUPT_MESSAGE (UNKNOWN_SERVER_ERROR), a transactional batch "
    "INVALID_TXN_STATE, also without a transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED).",
    "With `full`, records that unpack to more than 100 MiB answer MESSAGE_TOO_LARGE, and a record has at most 65,536 "
    "headers; Kafka has no such bounds.",
    "A Fetch before version 10 of a topic whose `compression.type` is zstd, by itself or by the broker's default, is "
    "answered UNSUPPORTED_COMPRESSION_TYPE, as KIP-110 asks; Kafka 4.3.1 answers it. Other zstd batches are handed to "
    "all versions here, too.",
    "A Fetch of which a partition holds more than a limit or the end of a segment let through is answered at once, "
    "also with fewer than `min_bytes`; Kafka waits where a limit is below `min_bytes`.",
    "IncrementalAlterConfigs with an operation that does not exist is INVALID_REQUEST; Kafka: UNKNOWN_SERVER_ERROR.",
    "A reassignment completes only where as many stay in sync as `min.insync.replicas` asks for; a cancellation that "
    "would leave fewer is refused (INVALID_REPLICA_ASSIGNMENT), and so is UnregisterBroker for a broker that is there "
    "or alone has all of a partition (INVALID_REQUEST). Kafka does each of these; see "
    "[the decision](decisions/011-what-operators-may-take-away.md).",
    "A wrong value of a broker's option is INVALID_CONFIG, as it is for a topic's; Kafka: INVALID_REQUEST, which "
    "KAFKA-13609 calls the wrong one. Options of Kafka's that have no effect here are stored for a broker whatever "
    "their value, and described as an unknown one is: sensitive, and without the value. `NaN` is not taken for a "
    "ratio.",
    "`min.insync.replicas` may be deleted for all brokers, and counts by default then; Kafka refuses that.",
    "What Kafka answers UNKNOWN_SERVER_ERROR, for all that a request asks: Metadata of a topic without name and id "
    "(INVALID_REQUEST here), DescribeTopicPartitions of an empty name (INVALID_TOPIC_EXCEPTION, of that one only), "
    "CreatePartitions of more than 10,000 (POLICY_VIOLATION). AlterConfigs that names a resource twice is "
    "INVALID_REQUEST; Kafka never answers. DescribeConfigs of a resource type that does not exist is INVALID_REQUEST "
    "for that resource; Kafka refuses the others of the request, too.",
    "Metadata that asks for some topics by id and for others by name answers all of them; Kafka only those by id. Of "
    "two topics in one CreateTopics whose names collide in metrics (`a.b`, `a_b`) the second is refused; Kafka "
    "creates both. The 10,000 partitions of a CreateTopics are those of each topic; Kafka's are those of the whole "
    "request.",
    "`__consumer_offsets` is not deleted (TOPIC_DELETION_DISABLED, before version 3 INVALID_REQUEST), gets no more "
    "partitions (INVALID_PARTITIONS), is created only with `offsets.topic.num.partitions`, and stays compacted "
    "(INVALID_CONFIG); Kafka does each of these when asked, and every group loses its offsets.",
    "FindCoordinator and Metadata answer once `__consumer_offsets` is created; Kafka says COORDINATOR_NOT_AVAILABLE or "
    "UNKNOWN_TOPIC_OR_PARTITION, and creates it meanwhile. While a broker of an earlier release is registered there "
    "are no coordinators.",
    "A JoinGroup or SyncGroup that waits is answered REBALANCE_IN_PROGRESS when its member sends another one; Kafka "
    "never answers it.",
    "An OffsetFetch of version 2 to 5 that fails as a whole says its error for each partition, too; Kafka names none. "
    "aiokafka 0.14 takes partitions that are not named for ones without an offset.",
    "A consumer group whose last member of KIP-848 gives its instance id to a classic member becomes a classic group "
    "that rebalances; Kafka's does not. A classic member whose subscription does not parse is refused there "
    "(INCONSISTENT_GROUP_PROTOCOL); Kafka: UNKNOWN_SERVER_ERROR.",
    "DescribeGroups from version 5 on and ConsumerGroupDescribe tell why a group rebalanced last, in a tagged field of "
    "our own with the number 20292 (`0x4F44`), which Kafka's clients pass over.",
    "Options of share and streams groups are refused (INVALID_CONFIG) and not described.",
    "A partition that AlterPartitionReassignments names twice is changed twice, one after the other; Kafka looks at "
    "both as it was before.",
)


def _versions(api: Api) -> str:
    lowest, highest = api.served
    served = str(lowest) if lowest == highest else f"{lowest}–{highest}"
    if not api.is_advertised:
        return f"{served} (to brokers, not advertised)"
    return served if api.advertised == api.served else f"{served} (advertised from {api.advertised[0]})"


def _flexible(api: Api) -> str:
    """The first flexible version, where it is one of those served."""
    since = api.request.flexible_since
    return "–" if since is None or since > api.served[1] else str(since)


def _docstring(api: Api) -> list[str]:
    """The paragraphs of the handler's module, each as one line."""
    text = inspect.getdoc(inspect.getmodule(api.handle)) or ""
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def summary(api: Api) -> str:
    """What the API does: the first sentence of the docstring, without name and key."""
    title, _, rest = _docstring(api)[0].partition(": ")
    assert title == f"{api.name} (key {api.key})", f"the docstring of {api.name} opens with {title!r}"
    return rest.removesuffix(".")


def history(api: Api) -> str:
    """What the versions brought: the docstring's last paragraph, without its first word."""
    word, _, rest = _docstring(api)[-1].partition(": ")
    assert word == "Versions", f"the docstring of {api.name} ends with {word!r}"
    return rest


def documentation() -> str:
    """The text of docs/protocol-support.md."""
    apis = sorted(SERVED, key=lambda api: api.key)
    return "\n".join(
        [
            "# Protocol support",
            "",
            "<!-- Made by `python -m odradek.broker.pages.protocol_page > docs/protocol-support.md`. -->",
            "",
            f"{len(apis)} APIs are served. The ranges are those of Apache Kafka 4.3, which is what clients read from",
            "them, with TxnOffsetCommit 6 and ApiVersions 5 of 4.4; with `act.as` clients are told those of an",
            "earlier release ([configuration.md](configuration.md)). A request of another API or version closes the",
            "connection, with a line in the broker's log; only an unknown version of ApiVersions is answered, in",
            "version 0, with UNSUPPORTED_VERSION (KIP-511). Bytes behind a request's body are ignored, as Kafka does:",
            "librdkafka sends some.",
            "",
            "| key | API | versions | flexible from | what it does |",
            "|---:|---|---|---:|---|",
            *(
                f"| {api.key} | {api.name} | {_versions(api)} | {_flexible(api)} | {_cell(summary(api))} |"
                for api in apis
            ),
            "",
            "Record batches are of format 2 (magic 2), which every version of Produce and Fetch here carries; older",
            "formats are refused. Codecs: none, gzip, snappy (raw and with Java's framing), lz4 and zstd.",
            "",
            "## What the versions brought",
            "",
            *(f"- **{api.name}**: {history(api)}" for api in apis),
            "",
            "## Where it differs from Apache Kafka 4.3.1",
            "",
            *(f"- {deviation}" for deviation in DEVIATIONS),
            "",
        ]
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(documentation())
