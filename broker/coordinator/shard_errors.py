"""What a coordinator's clients are told of an append that failed (`CoordinatorOperationExceptionHelper` of Kafka).

Clients of a coordinator know few errors that they repeat a request for: what happened to its log is said in those.
"""

from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError

_MEANS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What is not named here stays what it is."""


_OF_A_PRODUCER: Final = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)
"""Says something of the transaction whose batch it is, and nothing to others."""


class AppendRefused(KafkaError):
    """The log did not take what a request was to write. `cause` says why, in the log's own terms."""

    def __init__(self, cause: KafkaError) -> None:
        super().__init__(_MEANS.get(cause.code, cause.code), cause.message)
        self.cause = cause


def as_coordinator(error: KafkaError) -> KafkaError:
    """What a client is told of an append that was refused, or is not committed."""
    return AppendRefused(error)


def as_bystander(error: KafkaError) -> KafkaError:
    """What others are told, whose answers depend on an append that was refused. What is wrong with a producer's
    transaction is not wrong with the members of the group that it commits for: they ask again."""
    if error.code in _OF_A_PRODUCER:
        error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"it depends on what was refused: {error.message}")
    return as_coordinator(error)
