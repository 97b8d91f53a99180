"""What to do about an error code of a broker, in one sentence of advice for each code that a client may meet.

`hint(code)` always has an answer: a code without a row of its own gets the sentence of its kind. Settings are named as
client/configuration has them; options of topics and brokers have dots, as Kafka writes them.
"""

from typing import Final

from odradek.protocol.errors import ErrorCode, Reaction

__all__ = ["hint"]

_RETRIED: Final = "The client repeats the request by itself; if it goes on, look at the broker's log and load."
_ELSEWHERE: Final = "The cluster is changing leaders; the client follows. If it goes on, look whether all brokers run."
_BROKER_LOG: Final = "The reason stands in the broker's log."
_ACL: Final = "Give the principal that right by an ACL, or use other credentials."
_CREDENTIALS: Final = (
    "Check sasl_mechanism and the credentials, and whether the broker's listener offers the mechanism."
)

HINTS: Final[dict[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: _BROKER_LOG,
    ErrorCode.OFFSET_OUT_OF_RANGE: "Read from the earliest or the latest offset; retention may have removed this one.",
    ErrorCode.CORRUPT_MESSAGE: "Look for damaged memory, disks or a proxy on the way; a compacted topic wants keys.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "Check the topic's name, create the topic, or give the right to describe it.",
    ErrorCode.LEADER_NOT_AVAILABLE: _ELSEWHERE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: _ELSEWHERE,
    ErrorCode.REQUEST_TIMED_OUT: "Look at the load of the broker, or raise request_timeout_ms.",
    ErrorCode.BROKER_NOT_AVAILABLE: "Look whether the brokers run and know one another.",
    ErrorCode.REPLICA_NOT_AVAILABLE: _ELSEWHERE,
    ErrorCode.MESSAGE_TOO_LARGE: "Send smaller records, compress them, or raise max.message.bytes of the topic.",
    ErrorCode.NETWORK_EXCEPTION: "Look whether the broker runs and can be reached.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "A topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'.",
    ErrorCode.RECORD_LIST_TOO_LARGE: "Lower batch_size, or raise segment.bytes of the topic.",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Bring the missing brokers back, or lower min.insync.replicas of the topic.",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "Bring missing brokers back; a retry without idempotence doubles it.",
    ErrorCode.INVALID_REQUIRED_ACKS: "Set acks to 0, 1 or 'all'.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: f"It needs Write, Read or Describe on the topic. {_ACL}",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: f"It needs Read or Describe on the group. {_ACL}",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: f"It needs a right on the cluster, such as Alter. {_ACL}",
    ErrorCode.INVALID_TIMESTAMP: "Check timestamp_ms against message.timestamp.before.max.ms and after.max.ms.",
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: _CREDENTIALS,
    ErrorCode.ILLEGAL_SASL_STATE: "Check whether security_protocol is the one of the broker's listener.",
    ErrorCode.UNSUPPORTED_VERSION: "Upgrade the broker, or leave out what the older one does not know.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "Use the topic that exists, or another name.",
    ErrorCode.INVALID_PARTITIONS: "Ask for one partition at least; the number can grow, never shrink.",
    ErrorCode.INVALID_REPLICATION_FACTOR: "Ask for at most as many replicas as there are brokers, or for -1.",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "Name brokers that exist, each once for a partition.",
    ErrorCode.INVALID_CONFIG: "Check the option's name and the bounds of its value.",
    ErrorCode.NOT_CONTROLLER: _RETRIED,
    ErrorCode.INVALID_REQUEST: "Check the arguments; if they are right, one side misreads the other.",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "Upgrade the topic's message format, which is older than Kafka 0.11.",
    ErrorCode.POLICY_VIOLATION: "Ask the operator of the cluster what the policy allows.",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "Records sent before may be lost at the broker; compare its log.",
    ErrorCode.INVALID_PRODUCER_EPOCH: "Send the record again: the producer goes on under a new epoch.",
    ErrorCode.CONCURRENT_TRANSACTIONS: _RETRIED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: f"It needs Write on the transactional id. {_ACL}",
    ErrorCode.SECURITY_DISABLED: "Set authorizer.class.name of the brokers.",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "Correct the other part of the request and ask again.",
    ErrorCode.KAFKA_STORAGE_ERROR: "Look at the disk of that broker.",
    ErrorCode.LOG_DIR_NOT_FOUND: "Check log.dirs of the broker.",
    ErrorCode.SASL_AUTHENTICATION_FAILED: _CREDENTIALS,
    ErrorCode.UNKNOWN_PRODUCER_ID: "Raise retention.ms of the topic if records are removed too soon.",
    ErrorCode.TOPIC_DELETION_DISABLED: "Set delete.topic.enable of the brokers.",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "Set compression_type to one that the broker knows; zstd needs Kafka 2.1.",
    ErrorCode.INVALID_RECORD: "Correct the record: a compacted topic wants keys, and a topic may bound timestamps.",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "Ask less often, or raise the quota.",
    ErrorCode.PRODUCER_FENCED: "Close it; a new one takes over in turn. If no other producer has the transactional id, "
    "a transaction was open for longer than transaction_timeout_ms.",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "Close the producer and make a new one: the coordinator has forgotten its "
    "transactional id (transactional.id.expiration.ms), or gave it to another producer.",
    ErrorCode.INVALID_TXN_STATE: "The coordinator has no such transaction, or no longer: it aborts one that is open "
    "for longer than transaction_timeout_ms.",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "Lower transaction_timeout_ms, or raise transaction.max.timeout.ms of the "
    "brokers.",
    ErrorCode.TRANSACTION_ABORTABLE: "Abort the transaction and begin another one.",
    ErrorCode.UNKNOWN_TOPIC_ID: "The topic was deleted, or created again; the client looks its id up anew.",
}
"""The advice by code. Those missing get the sentence of their kind."""

_KINDS: Final = {
    Reaction.RETRY: _RETRIED,
    Reaction.RETRY_REFRESH: _ELSEWHERE,
    Reaction.FATAL: "Correct the client's settings or rights and start it again.",
}


def hint(code: ErrorCode) -> str:
    """One sentence or two of advice; none for NONE."""
    if code is ErrorCode.NONE:
        return ""
    return HINTS.get(code) or _KINDS.get(code.reaction, _BROKER_LOG)
