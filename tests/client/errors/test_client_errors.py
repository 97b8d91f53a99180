"""Shows the client's errors as a caller meets them: one tree, its attributes and sentences, copies that stay small."""

import copy
import pickle
import traceback
from collections.abc import Callable
from typing import Any, cast

import pytest

from odradek.client.errors import client_errors
from odradek.client.errors.client_errors import (
    AuthenticationFailed,
    BatchError,
    BrokerError,
    BufferExhausted,
    BufferFull,
    ClientClosed,
    ClientError,
    ClientNotStarted,
    ConfigError,
    ConnectionFailed,
    DeliveryPending,
    DeliveryTimeout,
    InvalidPartition,
    InvalidTopic,
    MalformedResponse,
    MetadataMissing,
    MetadataTimeout,
    PartitionerFailed,
    ProducerClosed,
    ProducerNotStarted,
    RecordTooLarge,
    RequestTimedOut,
    SerializationError,
    UndeliveredRecords,
    UnsupportedVersion,
    WrongLoop,
    WrongUse,
    broker_error,
)
from odradek.protocol.errors import ErrorCode, Reaction

TOO_LARGE = RecordTooLarge("orders", 2_000_000, 1_048_576, "max_request_size")

EXAMPLES: list[ClientError] = [
    ConnectionFailed("broker 1 (localhost:9092)", "connection refused"),
    RequestTimedOut("Produce", "broker 1 (localhost:9092)", 30_000.0),
    MalformedResponse("Metadata", "broker 1 (localhost:9092)", "17 bytes are left over"),
    AuthenticationFailed("broker 1 (localhost:9092)", "SASL PLAIN", "refused", "no such user"),
    ConfigError("acks must be 0, 1, -1 or 'all', not 2", settings=("acks",), hint="Set another."),
    SerializationError("orders", "value_serializer", {"a": 1}, "TypeError: no", "serialize_str"),
    SerializationError("orders", "value_serializer", {"a": 1}, "it is not bytes, and no serializer is set"),
    SerializationError("orders", "headers", {"a": 1}, "headers are pairs"),
    TOO_LARGE,
    RecordTooLarge("orders", None, None, "max.message.bytes", "batch of 3000 bytes"),
    InvalidPartition("orders", 12, 12),
    InvalidPartition("orders", "two", 12, "ByCountry"),
    PartitionerFailed("orders", "ByCountry", KeyError("XX")),
    BufferFull(500, 100, 2),
    BufferExhausted("orders", 500, 33_554_432, 60_000.0),
    MetadataMissing("orders"),
    MetadataTimeout("orders", 60_000.0, "no broker answered"),
    DeliveryTimeout("orders", 3, 120_000, was_sent=True, last_error=ConnectionFailed("broker 1")),
    UndeliveredRecords(4, [("orders", 3, TOO_LARGE)] * 4),
    BatchError((None, "ack"), {0: TOO_LARGE}),
    BatchError((None, "ack", None), {0: TOO_LARGE}, [2], BufferExhausted("orders", 500, 33_554_432, 60_000.0)),
    BatchError((), {}, [], KeyError("no such row")),
    ProducerNotStarted(),
    ClientNotStarted("admin client"),
    ProducerClosed(),
    ProducerClosed("the producer was closed before the record was acknowledged"),
    ClientClosed("admin client"),
    WrongLoop("producer", "in another thread"),
    DeliveryPending("orders", 3),
    UnsupportedVersion("Produce", "broker 1 (localhost:9092)", (3, 11), (0, 2)),
    UnsupportedVersion("DescribeTopicPartitions", "broker 1 (localhost:9092)", (0, 0), None),
    *(broker_error(code, "its own words", "Produce to orders-3") for code in ErrorCode if code),
    broker_error(999, None, "Produce to orders-3"),
    BrokerError(ErrorCode.POLICY_VIOLATION),
]


def by_text(error: ClientError) -> str:
    return f"{type(error).__name__}-{error.code.name if error.code is not None else 'none'}"


def state(error: ClientError) -> dict[str, object]:
    """Whatever can be read from an error, errors inside it as their state."""
    names = ("retriable", "fatal", "code", "broker_message", "hint", "message", *vars(error))
    return {name: plain(getattr(error, name)) for name in names} | {"text": str(error), "class": type(error)}


def plain(value: Any) -> object:
    if isinstance(value, ClientError):
        return state(value)
    if isinstance(value, tuple | list):
        return [plain(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast(Any, value).items()
        return {key: plain(each) for key, each in pairs}
    return cast(object, value)


def by_pickle(error: ClientError) -> ClientError:
    twin: ClientError = pickle.loads(pickle.dumps(error))  # noqa: S301  (our own bytes)
    return twin


def by_old_pickle(error: ClientError) -> ClientError:
    twin: ClientError = pickle.loads(pickle.dumps(error, protocol=2))  # noqa: S301
    return twin


def by_copy(error: ClientError) -> ClientError:
    return copy.copy(error)


def by_deepcopy(error: ClientError) -> ClientError:
    return copy.deepcopy(error)


# ------------------------------------------------------------------------------------------------------- all of them
def test_every_class_has_an_example() -> None:
    """So that what the tests below show holds for the whole tree."""
    public = {getattr(client_errors, name) for name in client_errors.__all__}
    classes = {kind for kind in public if isinstance(kind, type)}
    bases = {ClientError, WrongUse}
    assert classes - bases <= {type(error) for error in EXAMPLES}
    assert all(issubclass(kind, ClientError) for kind in classes)


@pytest.mark.parametrize("error", EXAMPLES, ids=by_text)
def test_an_error_says_what_happened_and_what_to_do(error: ClientError) -> None:
    text = str(error)
    assert text.startswith(error.message)
    assert error.message
    assert text.endswith(error.hint)
    assert ".." not in text.replace("…", "")
    if not isinstance(error, ClientClosed):
        assert error.hint.endswith((".", "them."))
    if error.broker_message:
        assert f"The broker says: {error.broker_message}" in text


@pytest.mark.parametrize("error", EXAMPLES, ids=by_text)
@pytest.mark.parametrize("copied", [by_copy, by_deepcopy, by_pickle, by_old_pickle, ClientError.fresh])
def test_an_error_survives_copying(error: ClientError, copied: Callable[[ClientError], ClientError]) -> None:
    twin = copied(error)
    assert twin is not error
    assert type(twin) is type(error)
    assert state(twin) == state(error)
    assert twin.args == error.args


@pytest.mark.parametrize("error", EXAMPLES, ids=by_text)
def test_attributes_agree_with_the_code(error: ClientError) -> None:
    if isinstance(error, BrokerError):
        assert error.code is not None
        assert error.retriable is error.code.retriable
        assert error.fatal is (error.code.reaction is Reaction.FATAL)
    assert not (error.retriable and error.fatal)


def test_what_may_be_tried_again() -> None:
    """Losing a connection, a deadline or room is no verdict about a record; everything else is."""
    retriable = {type(error) for error in EXAMPLES if error.retriable and not isinstance(error, BrokerError)}
    timed_out = {RequestTimedOut, BufferExhausted, MetadataTimeout, DeliveryTimeout}
    assert retriable == {ConnectionFailed, MalformedResponse, BufferFull, MetadataMissing} | timed_out
    assert AuthenticationFailed("b", "TLS", "expired").fatal


# ---------------------------------------------------------------------------------------------------- raised many times
def test_a_fresh_copy_leaves_the_kept_error_as_it_was() -> None:
    """One error ends thousands of records: raising copies of it adds neither to its traceback nor to its notes."""
    kept = ConnectionFailed("broker 1")
    kept.__cause__ = OSError("refused")
    kept.add_note("in the first run")
    lengths: set[int] = set()
    for number in range(5):
        try:
            raise kept.fresh()
        except ConnectionFailed as error:
            error.add_note(f"record {number}")
            lengths.add(len(traceback.extract_tb(error.__traceback__)))
            assert error.__cause__ is kept.__cause__
            assert error.__notes__ == ["in the first run", f"record {number}"]
    assert lengths == {1}
    assert kept.__traceback__ is None
    assert kept.__notes__ == ["in the first run"]


def test_a_fresh_copy_without_a_cause_shows_its_context() -> None:
    """Setting `__cause__` to None would hide what was being handled."""
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise MetadataMissing("orders").fresh()  # noqa: B904  (the context is what is shown here)
    except MetadataMissing as error:
        assert not error.__suppress_context__
        assert isinstance(error.__context__, KeyError)


# ------------------------------------------------------------------------------------------------- answers of brokers
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (2, BrokerError),
        (3, client_errors.UnknownTopic),
        (100, client_errors.UnknownTopic),
        (10, RecordTooLarge),
        (17, InvalidTopic),
        (19, client_errors.NotEnoughReplicas),
        (20, client_errors.NotEnoughReplicas),
        (29, client_errors.AuthorizationError),
        (30, client_errors.AuthorizationError),
        (31, client_errors.AuthorizationError),
        (53, client_errors.AuthorizationError),
        (33, AuthenticationFailed),
        (34, AuthenticationFailed),
        (58, AuthenticationFailed),
        (35, UnsupportedVersion),
        (36, client_errors.TopicExists),
        (45, client_errors.SequenceError),
        (47, client_errors.SequenceError),
        (59, client_errors.SequenceError),
        (32, client_errors.RecordRefused),
        (87, client_errors.RecordRefused),
        (44, BrokerError),
        (999, BrokerError),
        (-1, BrokerError),
    ],
)
def test_the_most_specific_class_of_a_code(code: int, kind: type[ClientError]) -> None:
    error = broker_error(code, "words", "Produce to orders-3")
    assert type(error) is kind
    assert "Produce to orders-3" in str(error)
    assert error.broker_message == "words"


def test_a_broker_error_names_its_code() -> None:
    error = broker_error(6, "epoch 7", "Produce to orders-3")
    assert str(error) == (
        "Produce to orders-3 failed with NOT_LEADER_OR_FOLLOWER (6): This broker is not the leader, or not a replica, "
        "of the partition. The broker says: epoch 7. The cluster is changing leaders; the client follows. If it goes "
        "on, look whether all brokers run."
    )
    assert isinstance(error, BrokerError)
    assert error.number == 6


def test_an_unknown_code_is_kept_as_a_number() -> None:
    error = broker_error(999)
    assert isinstance(error, BrokerError)
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert error.number == 999
    assert not error.retriable
    assert "999" in str(error)


def test_an_error_refused_by_the_broker_has_the_attributes_of_its_class() -> None:
    """Those of RecordTooLarge and UnsupportedVersion are known only when the client found it itself."""
    too_large, unsupported = broker_error(10), broker_error(35)
    assert isinstance(too_large, RecordTooLarge)
    assert (too_large.topic, too_large.size_bytes, too_large.limit_bytes) == ("", None, None)
    assert isinstance(unsupported, UnsupportedVersion)
    assert unsupported.api == ""


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_has_a_hint(code: ErrorCode) -> None:
    error = BrokerError(code)
    assert bool(error.hint) is (code is not ErrorCode.NONE)


def test_a_brokers_words_are_bounded_and_cannot_forge_a_log() -> None:
    error = broker_error(-1, "first\n2026-01-01 ERROR second\x1b[31m" + "x" * 100_000)
    assert "\n" not in str(error)
    assert "\x1b" not in str(error)
    assert len(error.broker_message) == 1000
    assert error.broker_message.endswith("…")
    assert ConnectionFailed("b", "one\ntwo").message == "the connection to b failed: one two"


# -------------------------------------------------------------------------------------------------- facts in sentences
def test_too_large_names_both_figures() -> None:
    assert "2000000 bytes for orders is larger than max_request_size of 1048576 bytes" in str(TOO_LARGE)
    assert TOO_LARGE.code is ErrorCode.MESSAGE_TOO_LARGE
    unknown = RecordTooLarge("orders", 3000, None, "max.message.bytes")
    assert "a record of 3000 bytes for orders is larger than max.message.bytes. " in str(unknown)


def test_a_delivery_timeout_says_whether_the_record_may_be_in_the_log() -> None:
    unsent, sent = DeliveryTimeout("t", 0, 120_000), DeliveryTimeout("t", 0, 120_000, was_sent=True)
    assert "was not sent" in str(unsent)
    assert "may be in the log" in str(sent)
    last = BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)
    failed = DeliveryTimeout("t", 0, 120_000, was_sent=True, last_error=last)
    assert last.message in str(failed)
    assert failed.hint == last.hint


def test_a_serialization_error_names_topic_class_and_setting() -> None:
    text = str(SerializationError("orders", "key_serializer", 1.5, "TypeError: no", "Registry"))
    for part in ("orders", "float", "key_serializer", "Registry", "TypeError: no", "the key of a record"):
        assert part in text
    assert "Hand in bytes" in str(SerializationError("orders", "value_serializer", 1.5, "not bytes"))


def test_undelivered_records_show_a_few() -> None:
    error = UndeliveredRecords(10, [("t", index, TOO_LARGE) for index in range(5)])
    assert error.count == 10
    assert len(error.errors) == 5
    assert "t-2" in str(error)
    assert "t-3" not in str(error)
    assert "and more" in str(error)
    assert "and more" not in str(UndeliveredRecords(2, error.errors[:2]))
    assert not error.retriable
    assert UndeliveredRecords(1, [("t", 0, ConnectionFailed("b"))]).retriable


def test_a_batch_error_counts_and_tells_whether_to_repeat() -> None:
    lost = ConnectionFailed("b")
    error = BatchError([None, "ack", None], {2: lost, 0: lost})
    assert "2 of 3 records failed" in str(error)
    assert "the first, at index 0: the connection to b" in str(error)
    assert error.retriable
    assert not BatchError([None, None], {0: lost, 1: TOO_LARGE}).retriable


def test_a_batch_error_of_a_bulk_that_stopped_is_about_that_first() -> None:
    lost, full = ConnectionFailed("b"), BufferExhausted("orders", 500, 33_554_432, 60_000.0)
    error = BatchError([None, "ack", None, None], {0: lost}, [2, 3], full)
    assert error.message.startswith(f"sending stopped: {full.message}")
    assert "Of 4 records that were taken until then, 2 were not accepted and 1 failed" in str(error)
    assert "`unsent`" in error.hint
    assert error.retriable
    assert not BatchError([None], {}, [0], TOO_LARGE).retriable
    assert not BatchError([None], {}, [0], KeyError("no such row")).retriable
    fatal = AuthenticationFailed("b", "SASL PLAIN", "refused", "")
    assert fatal.fatal
    assert BatchError([None], {0: lost}, [], fatal).fatal
    assert BatchError([None], {0: fatal}).fatal
    assert not error.fatal


def test_a_config_error_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="acks"):
        raise ConfigError("acks", settings=("acks",))
