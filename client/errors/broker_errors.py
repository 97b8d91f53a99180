"""Errors that a broker answers by a code of Kafka's, a class for each that callers tell apart.

`broker_error` picks the class; those without one are a `BrokerError`. Some are also raised before anything is sent,
then made of facts that only the client has.
"""

from typing import Final

from odradek.client.errors.base import ClientError, printable
from odradek.client.errors.hints import hint as hint_of
from odradek.protocol.errors import ErrorCode, Reaction, code_of

__all__ = [
    "AuthenticationFailed",
    "AuthorizationError",
    "BrokerError",
    "InvalidTopic",
    "NotEnoughReplicas",
    "ProducerFenced",
    "RecordRefused",
    "RecordTooLarge",
    "SequenceError",
    "TopicExists",
    "UnknownTopic",
    "UnsupportedVersion",
    "broker_error",
]


class BrokerError(ClientError):
    """A broker answered with an error code. `what`: what was asked of whom, such as "Produce to orders-3"."""

    number: int
    """The code as it was received."""

    def __init__(self, code: int, broker_message: str | None = "", *, what: str = "") -> None:
        known = code_of(code)
        named = f"{known.name} ({code})" if int(known) == code else f"the unknown error code {code}"
        text = f": {known.text}" if int(known) == code else ""
        super().__init__(
            f"{what} failed with {named}{text}" if what else f"{named}{text}", broker_message=broker_message
        )
        self._classify(code)
        self.hint = hint_of(known)

    def _classify(self, code: int) -> None:
        self.code = code_of(code)
        self.number = int(code)
        self.retriable = self.code.retriable
        self.fatal = self.code.reaction is Reaction.FATAL


class AuthorizationError(BrokerError):
    """The principal lacks a right: on the topic, the group, or (then fatal) the transactional id or the cluster."""


class InvalidTopic(BrokerError):
    """The topic's name is not valid, or the topic is not for this use."""


class UnknownTopic(BrokerError):
    """The topic or partition does not exist, or the principal may not know of it. Retriable: it may be on its way."""


class TopicExists(BrokerError):
    """There is a topic by this name."""


class NotEnoughReplicas(BrokerError):
    """Fewer replicas are in sync than `min.insync.replicas`."""


class RecordRefused(BrokerError):
    """The broker's validation refused a record, or its timestamp."""


class ProducerFenced(BrokerError):
    """Another producer with this transactional id has taken over, or the coordinator has aborted a transaction that was
    open for too long. This one can only be closed."""


class SequenceError(BrokerError):
    """The broker and the idempotent producer disagree about what was written last."""


class RecordTooLarge(BrokerError):
    """A record is over a limit: of the client before it was sent, or of the topic after it was split down to one.

    `size_bytes` and `limit_bytes` are None where a broker does not tell them.
    """

    topic: str = ""
    size_bytes: int | None = None
    limit_bytes: int | None = None
    limit_name: str = "max.message.bytes"

    def __init__(
        self,
        topic: str,
        size_bytes: int | None,
        limit_bytes: int | None,
        limit_name: str,
        broker_message: str | None = "",
    ) -> None:
        size = f" of {size_bytes} bytes" if size_bytes is not None else ""
        limit = f" of {limit_bytes} bytes" if limit_bytes is not None else ""
        ClientError.__init__(
            self,
            f"a record{size} for {topic} is larger than {limit_name}{limit}",
            broker_message=broker_message,
            hint=f"Send a smaller record, or raise {limit_name}.",
        )
        self._classify(ErrorCode.MESSAGE_TOO_LARGE)
        self.topic = topic
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
        self.limit_name = limit_name


_NEWER_BROKER: Final = "Upgrade this client: the broker no longer has the versions that it knows."


class UnsupportedVersion(BrokerError):
    """Client and broker have no version of an API in common, or not the one that a feature needs.

    The ranges are (lowest, highest); `theirs` is None where the broker does not know the API.
    """

    api: str = ""

    def __init__(self, api: str, broker: str, ours: tuple[int, int], theirs: tuple[int, int] | None) -> None:
        if theirs is None:
            has = f"{broker} does not know {api}"
        else:
            has = f"{broker} has the versions {theirs[0]} to {theirs[1]} of {api}"
        is_newer = theirs is not None and theirs[0] > ours[1]
        ClientError.__init__(
            self,
            f"{has}, where this call needs one of {ours[0]} to {ours[1]}",
            hint=_NEWER_BROKER if is_newer else hint_of(ErrorCode.UNSUPPORTED_VERSION),
        )
        self._classify(ErrorCode.UNSUPPORTED_VERSION)
        self.api = api


class AuthenticationFailed(ClientError):
    """TLS or SASL did not come about. It is not tried again: credentials do not become right by themselves.

    `method`: such as "SASL SCRAM-SHA-512" or "TLS".
    """

    fatal = True
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    hint = "Check security_protocol, the credentials and certificates, and what the broker's listener asks for."

    def __init__(
        self, broker: str, method: str, why: str, broker_message: str | None = "", code: ErrorCode | None = None
    ) -> None:
        super().__init__(
            f"authentication by {method} at {broker} failed: {printable(why)}", broker_message=broker_message
        )
        if code is not None:
            self.code = code
        self.broker = broker
        self.method = method


_CLASSES: Final[dict[ErrorCode, type[BrokerError]]] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.INVALID_TOPIC_EXCEPTION: InvalidTopic,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopic,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopic,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExists,
    ErrorCode.NOT_ENOUGH_REPLICAS: NotEnoughReplicas,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: NotEnoughReplicas,
    ErrorCode.INVALID_RECORD: RecordRefused,
    ErrorCode.INVALID_TIMESTAMP: RecordRefused,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: SequenceError,
    ErrorCode.INVALID_PRODUCER_EPOCH: SequenceError,
    ErrorCode.UNKNOWN_PRODUCER_ID: SequenceError,
    ErrorCode.PRODUCER_FENCED: ProducerFenced,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLarge,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedVersion,
}
_AUTHENTICATION: Final = (
    ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    ErrorCode.ILLEGAL_SASL_STATE,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
)


def broker_error(code: int, broker_message: str | None = "", what: str = "") -> ClientError:
    """The most specific error for an error code of a broker. `what`: what was asked, such as "Produce to orders-3"."""
    known = code_of(code)
    if known in _AUTHENTICATION:
        why = f"{what}: {known.text}" if what else known.text
        return AuthenticationFailed("the broker", "SASL", why, broker_message, known)
    kind = _CLASSES.get(known, BrokerError)
    error = kind.__new__(kind)
    # Not `__init__` of the class: some are also made of facts that only the client has.
    BrokerError.__init__(error, code, broker_message, what=what)
    return error
