"""The error codes of Kafka 4, what a producer does about each, and the two exceptions in which errors travel.

Numbers, names and retriability are those of Kafka (Errors.java and its exception classes; 129 to 133 as
franz-go's kerr lists them). `KafkaError` answers a peer; `MalformedMessage` ends a connection, since nothing
that follows it can be trusted. `ErrorCode` is also the one table by which a producer completes, retries or fails a
batch: each row names its `Reaction`.
"""

from enum import Enum, IntEnum
from typing import Any, Final, Self

TEXT_LENGTH_MAX = 1000
"""Of an error's message: it may quote what a client sent, and must fit into an answer in any case."""


class KafkaError(Exception):
    """An error that a response can carry: `code`, and a `message` for people."""

    def __init__(self, code: "ErrorCode", message: str = "") -> None:
        self.code = code
        self.message = message or code.text
        if len(self.message) > TEXT_LENGTH_MAX:
            self.message = f"{self.message[: TEXT_LENGTH_MAX - 1]}…"
        super().__init__(code, self.message)

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


class MalformedMessage(Exception):
    """Bytes of a peer that are no message: truncated, contradictory, or with bytes left over."""


class TrailingBytes(MalformedMessage):
    """A whole message with bytes left over behind it, which Kafka ignores in requests. `message` is the message."""

    def __init__(self, text: str, message: Any) -> None:
        super().__init__(text)
        self.message = message


class Reaction(Enum):
    """What a producer does with a batch of records whose partition was answered with an error code.

    Read from Kafka's Sender.java and TransactionManager.java, and from the exception class of the code: one that
    extends InvalidMetadataException is RETRY_REFRESH, any other that extends RetriableException is RETRY.
    """

    SUCCESS = "success"
    """The batch is in the log."""
    RETRY = "retry"
    """Send it again after the backoff."""
    RETRY_REFRESH = "retry + refresh"
    """Send it again after the backoff, and ask for metadata: the leader, or what is known of it, has changed."""
    SPLIT = "split"
    """Send it again in parts; a single record fails."""
    FAIL = "fail"
    """Its records fail; other batches go on."""
    FATAL = "fatal"
    """Its records fail, and so will all others: rights, credentials or versions do not allow what the producer does."""
    SEQUENCE = "sequence"
    """The state of idempotence decides; without idempotence: FAIL."""

    @property
    def retriable(self) -> bool:
        return self is Reaction.RETRY or self is Reaction.RETRY_REFRESH


_SUCCESS: Final = Reaction.SUCCESS
_RETRY: Final = Reaction.RETRY
_REFRESH: Final = Reaction.RETRY_REFRESH
_SPLIT: Final = Reaction.SPLIT
_FAIL: Final = Reaction.FAIL
_FATAL: Final = Reaction.FATAL
_SEQUENCE: Final = Reaction.SEQUENCE


class ErrorCode(IntEnum):
    """A Kafka error code: its number, a producer's reaction, and a sentence about it in general.

    `retriable`: the same request, whichever it is, may succeed later. Codes that no Produce response holds have the
    reaction that Kafka's exception classes give them: a peer may send them nevertheless.
    """

    reaction: Reaction
    retriable: bool
    text: str

    def __new__(cls, code: int, reaction: Reaction = _FAIL, text: str = "") -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.reaction = reaction
        member.retriable = reaction.retriable
        member.text = text
        return member

    UNKNOWN_SERVER_ERROR = -1, _FAIL, "The broker failed in a way that it did not expect."
    NONE = 0, _SUCCESS, "No error."
    OFFSET_OUT_OF_RANGE = 1, _FAIL, "The offset lies outside of the log of this partition."
    CORRUPT_MESSAGE = 2, _RETRY, "The batch fails its checksum or is otherwise damaged."
    UNKNOWN_TOPIC_OR_PARTITION = 3, _REFRESH, "This broker does not host the topic or partition."
    INVALID_FETCH_SIZE = 4, _FAIL, "The fetch size is not valid."
    LEADER_NOT_AVAILABLE = 5, _REFRESH, "The partition has no leader at the moment."
    NOT_LEADER_OR_FOLLOWER = 6, _REFRESH, "This broker is not the leader, or not a replica, of the partition."
    REQUEST_TIMED_OUT = 7, _RETRY, "The request was not completed in time."
    BROKER_NOT_AVAILABLE = 8, _FAIL, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, _REFRESH, "The replica is not available."
    MESSAGE_TOO_LARGE = 10, _SPLIT, "The batch is larger than the broker accepts."
    STALE_CONTROLLER_EPOCH = 11, _FAIL, "Another broker has become the controller."
    OFFSET_METADATA_TOO_LARGE = 12, _FAIL, "The metadata committed with the offset is too large."
    NETWORK_EXCEPTION = 13, _REFRESH, "The connection was lost before a response arrived."
    COORDINATOR_LOAD_IN_PROGRESS = 14, _RETRY, "The coordinator is still loading its state."
    COORDINATOR_NOT_AVAILABLE = 15, _RETRY, "The coordinator is not available."
    NOT_COORDINATOR = 16, _RETRY, "This broker is not the coordinator."
    INVALID_TOPIC_EXCEPTION = 17, _FAIL, "The topic name is not valid, or the operation is not allowed on this topic."
    RECORD_LIST_TOO_LARGE = 18, _FAIL, "The batch is larger than a log segment may be."
    NOT_ENOUGH_REPLICAS = 19, _RETRY, "Fewer replicas are in sync than the topic requires; nothing was written."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, _RETRY, "Written, but to fewer in-sync replicas than the topic requires."
    INVALID_REQUIRED_ACKS = 21, _FAIL, "The value of acks is none of -1, 0 and 1."
    ILLEGAL_GENERATION = 22, _FAIL, "The generation is not the current one of the group."
    INCONSISTENT_GROUP_PROTOCOL = 23, _FAIL, "The protocols of the member do not go with those of the group."
    INVALID_GROUP_ID = 24, _FAIL, "The group id is not valid."
    UNKNOWN_MEMBER_ID = 25, _FAIL, "The coordinator does not know this member."
    INVALID_SESSION_TIMEOUT = 26, _FAIL, "The session timeout is outside of the range that the broker allows."
    REBALANCE_IN_PROGRESS = 27, _FAIL, "The group is rebalancing; the member must join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, _FAIL, "The size of the committed offset data is not valid."
    TOPIC_AUTHORIZATION_FAILED = 29, _FAIL, "Not authorized to access the topic."
    GROUP_AUTHORIZATION_FAILED = 30, _FAIL, "Not authorized to access the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, _FATAL, "Not authorized to perform this operation on the cluster."
    INVALID_TIMESTAMP = 32, _FAIL, "The timestamp of a record is outside of the accepted range."
    UNSUPPORTED_SASL_MECHANISM = 33, _FATAL, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, _FATAL, "The request is not allowed in the current state of authentication."
    UNSUPPORTED_VERSION = 35, _FATAL, "The broker does not support this version of the API."
    TOPIC_ALREADY_EXISTS = 36, _FAIL, "A topic with this name exists already."
    INVALID_PARTITIONS = 37, _FAIL, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = 38, _FAIL, "The replication factor is below 1 or above the number of brokers."
    INVALID_REPLICA_ASSIGNMENT = 39, _FAIL, "The assignment of replicas is not valid."
    INVALID_CONFIG = 40, _FAIL, "The configuration is not valid."
    NOT_CONTROLLER = 41, _RETRY, "This broker is not the controller."
    INVALID_REQUEST = 42, _FAIL, "The request contradicts itself or the state of the broker."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, _FAIL, "The message format of the topic does not support the request."
    POLICY_VIOLATION = 44, _FAIL, "The request violates a configured policy."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, _SEQUENCE, "The sequence number does not follow the last one of this producer."
    DUPLICATE_SEQUENCE_NUMBER = 46, _SUCCESS, "The sequence number has been used already."
    INVALID_PRODUCER_EPOCH = 47, _SEQUENCE, "The producer epoch is older than the current one."
    INVALID_TXN_STATE = 48, _FAIL, "The transaction is not in a state that allows this operation."
    INVALID_PRODUCER_ID_MAPPING = 49, _FATAL, "The producer id is not the one assigned to the transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, _FAIL, "The transaction timeout is longer than the broker allows."
    CONCURRENT_TRANSACTIONS = 51, _RETRY, "Another operation on the same transaction is still running."
    TRANSACTION_COORDINATOR_FENCED = 52, _FAIL, "The sender is no longer the coordinator of this transaction."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, _FATAL, "Not authorized to use the transactional id."
    SECURITY_DISABLED = 54, _FAIL, "Security features are switched off."
    OPERATION_NOT_ATTEMPTED = 55, _FAIL, "Not attempted, because another part of the same request failed."
    KAFKA_STORAGE_ERROR = 56, _REFRESH, "The disk failed while the log was accessed."
    LOG_DIR_NOT_FOUND = 57, _FAIL, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, _FATAL, "Authentication failed."
    UNKNOWN_PRODUCER_ID = 59, _SEQUENCE, "The broker has no state for this producer id."
    REASSIGNMENT_IN_PROGRESS = 60, _FAIL, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, _FAIL, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, _FAIL, "The delegation token does not exist."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, _FAIL, "The principal is neither owner nor renewer of the token."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, _FAIL, "Delegation tokens cannot be requested over this connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, _FAIL, "Not authorized to use the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, _FAIL, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, _FAIL, "The type of the principal is not supported."
    NON_EMPTY_GROUP = 68, _FAIL, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, _FAIL, "The group does not exist."
    FETCH_SESSION_ID_NOT_FOUND = 70, _RETRY, "The fetch session does not exist."
    INVALID_FETCH_SESSION_EPOCH = 71, _RETRY, "The epoch of the fetch session is not the expected one."
    LISTENER_NOT_FOUND = 72, _REFRESH, "The leader has no listener by the name that the request came through."
    TOPIC_DELETION_DISABLED = 73, _FAIL, "Deletion of topics is switched off."
    FENCED_LEADER_EPOCH = 74, _REFRESH, "The leader epoch in the request is older than the one of the broker."
    UNKNOWN_LEADER_EPOCH = 75, _RETRY, "The leader epoch in the request is newer than the one of the broker."
    UNSUPPORTED_COMPRESSION_TYPE = 76, _FAIL, "The version of the request does not support this compression."
    STALE_BROKER_EPOCH = 77, _FAIL, "The broker epoch has changed."
    OFFSET_NOT_AVAILABLE = 78, _RETRY, "The high watermark has not caught up since the last election of a leader."
    MEMBER_ID_REQUIRED = 79, _FAIL, "The member must join again with the member id that it was given."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, _REFRESH, "The preferred leader is not available."
    GROUP_MAX_SIZE_REACHED = 81, _FAIL, "The group has as many members as it may have."
    FENCED_INSTANCE_ID = 82, _FAIL, "Another member has taken over this group instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, _REFRESH, "No replica that may become leader is available."
    ELECTION_NOT_NEEDED = 84, _REFRESH, "The partition needs no election."
    NO_REASSIGNMENT_IN_PROGRESS = 85, _FAIL, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, _FAIL, "The group is still subscribed to the topic."
    INVALID_RECORD = 87, _FAIL, "A record fails the validation of the broker."
    UNSTABLE_OFFSET_COMMIT = 88, _RETRY, "Offsets of an open transaction are pending."
    THROTTLING_QUOTA_EXCEEDED = 89, _RETRY, "The quota is exceeded."
    PRODUCER_FENCED = 90, _FATAL, "A newer producer with the same transactional id has taken over."
    RESOURCE_NOT_FOUND = 91, _FAIL, "The request names a resource that does not exist."
    DUPLICATE_RESOURCE = 92, _FAIL, "The request names the same resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, _FAIL, "The credential is not acceptable."
    INCONSISTENT_VOTER_SET = 94, _FAIL, "Sender or receiver is not one of the expected voters."
    INVALID_UPDATE_VERSION = 95, _FAIL, "The update is based on another version than the current one."
    FEATURE_UPDATE_FAILED = 96, _FAIL, "The finalized features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, _FAIL, "The principal of a forwarded request could not be read."
    SNAPSHOT_NOT_FOUND = 98, _FAIL, "The snapshot does not exist."
    POSITION_OUT_OF_RANGE = 99, _FAIL, "The position lies outside of the snapshot."
    UNKNOWN_TOPIC_ID = 100, _REFRESH, "This broker does not host a topic with this id."
    DUPLICATE_BROKER_REGISTRATION = 101, _FAIL, "The broker id is in use already."
    BROKER_ID_NOT_REGISTERED = 102, _FAIL, "The broker id is not registered."
    INCONSISTENT_TOPIC_ID = 103, _REFRESH, "The topic id in the request is not the one of the log."
    INCONSISTENT_CLUSTER_ID = 104, _FAIL, "The cluster id in the request is not the one of this cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, _FAIL, "The transactional id does not exist."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, _RETRY, "The fetch session mixes requests with and without topic ids."
    INELIGIBLE_REPLICA = 107, _FAIL, "The new in-sync set holds a replica that may not join it."
    NEW_LEADER_ELECTED = 108, _FAIL, "The partition was changed, and has another leader now."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, _FAIL, "The offset has moved to tiered storage."
    FENCED_MEMBER_EPOCH = 110, _FAIL, "The member must give up its partitions and join again."
    UNRELEASED_INSTANCE_ID = 111, _FAIL, "Another member still uses this instance id."
    UNSUPPORTED_ASSIGNOR = 112, _FAIL, "The group does not support this assignor."
    STALE_MEMBER_EPOCH = 113, _FAIL, "The member epoch is stale; the next heartbeat brings the current one."
    MISMATCHED_ENDPOINT_TYPE = 114, _FAIL, "The request was sent to the wrong type of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, _FAIL, "This type of endpoint is not supported."
    UNKNOWN_CONTROLLER_ID = 116, _FAIL, "The controller id is not known."
    UNKNOWN_SUBSCRIPTION_ID = 117, _FAIL, "The telemetry subscription does not exist or is outdated."
    TELEMETRY_TOO_LARGE = 118, _FAIL, "The telemetry is larger than the broker accepts."
    INVALID_REGISTRATION = 119, _FAIL, "The registration of the broker is not valid."
    TRANSACTION_ABORTABLE = 120, _FAIL, "The transaction failed; it can be aborted and the transactional id used again."
    INVALID_RECORD_STATE = 121, _FAIL, "The state of the record does not allow this acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, _RETRY, "The share session does not exist."
    INVALID_SHARE_SESSION_EPOCH = 123, _RETRY, "The epoch of the share session is not the expected one."
    FENCED_STATE_EPOCH = 124, _FAIL, "The epoch of the share group state does not match."
    INVALID_VOTER_KEY = 125, _FAIL, "The key of the voter is not the one of the receiving replica."
    DUPLICATE_VOTER = 126, _FAIL, "The voter is in the set of voters already."
    VOTER_NOT_FOUND = 127, _FAIL, "The voter is not in the set of voters."
    INVALID_REGULAR_EXPRESSION = 128, _FAIL, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, _FAIL, "The metadata of the client is stale; it must bootstrap again."
    STREAMS_INVALID_TOPOLOGY = 130, _FAIL, "The topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, _FAIL, "The topology epoch is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, _FAIL, "The topology epoch is outdated."
    SHARE_SESSION_LIMIT_REACHED = 133, _RETRY, "There are as many share sessions as there may be."


def code_of(number: int) -> ErrorCode:
    """The code of this number, UNKNOWN_SERVER_ERROR for one that Kafka has added since, as in Errors.forCode."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


_REACTIONS: Final = {int(code): code.reaction for code in ErrorCode}


def produce_reaction(code: int) -> Reaction:
    """How a producer answers this error code of a partition. A code that Kafka has added since fails the batch."""
    return _REACTIONS.get(code, Reaction.FAIL)
