"""The same raw requests sent to Apache Kafka 4.3.1 and to `odradek serve`: the answers are equal, or listed here.

The questions are in `questions_of_data.py`, `questions_of_validation.py`, `questions_of_groups.py`,
`questions_of_admin.py` and `questions_of_topic_ids.py`. A difference stands in `DIFFERENT` with both answers and the
reason; one that is none any more, or has become another one, fails.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from processes.apache_kafka import ApacheKafka
from processes.odradek_broker import OdradekBroker, settings_words
from tests.compat import (
    questions_of_admin,
    questions_of_data,
    questions_of_groups,
    questions_of_topic_ids,
    questions_of_validation,
)
from tests.compat.admin_fuzz import both_of, told_of
from tests.compat.admin_requests import history
from tests.compat.clusters import KEEPS_OLD_RECORDS
from tests.compat.peer import Peer
from tests.compat.questions import QUESTIONS, Answer

pytestmark = [pytest.mark.compat, pytest.mark.java, pytest.mark.slow]

ASKED_IN = (
    questions_of_admin,
    questions_of_data,
    questions_of_groups,
    questions_of_topic_ids,
    questions_of_validation,
)
"""Importing them fills `QUESTIONS`."""


class Difference(NamedTuple):
    """What Kafka answers, what we answer, and why."""

    theirs: Answer
    ours: Answer
    reason: str


OPTIONS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
} | KEEPS_OLD_RECORDS
SEEDS = range(12)
"""Of the histories of random requests."""

ONE_ANSWER_EACH = "Kafka answers once what a request names twice; we answer each time, so that nothing seems unanswered"
BY_HEADER = "record.validation=header, docs/decisions/005-record-validation.md"
REFUSED, TAKEN = [("INVALID_RECORD", -1)], [("NONE", 0)]
NO_ZSTD = ("UNSUPPORTED_COMPRESSION_TYPE", -1)
UNFORESEEN = "UNKNOWN_SERVER_ERROR"
OUT_OF_RANGE = ("OFFSET_OUT_OF_RANGE", -1)
LAST_FOUND = ("NONE", 2, 1_700_000_000_002)

DIFFERENT: dict[str, Difference] = {
    "create_the_same_twice_in_one_request": Difference(
        (["INVALID_REQUEST"], ["UNKNOWN_TOPIC_OR_PARTITION"]),
        (["INVALID_REQUEST", "INVALID_REQUEST"], ["UNKNOWN_TOPIC_OR_PARTITION"]),
        ONE_ANSWER_EACH,
    ),
    "add_partitions_twice_in_one_request": Difference(
        ["INVALID_REQUEST"], ["INVALID_REQUEST", "INVALID_REQUEST"], ONE_ANSWER_EACH
    ),
    "delete_twice_in_one_request": Difference(
        (["INVALID_REQUEST"], ["NONE"]), (["INVALID_REQUEST", "INVALID_REQUEST"], ["NONE"]), ONE_ANSWER_EACH
    ),
    "offsets_of_a_partition_named_twice": Difference(
        ["INVALID_REQUEST"], ["INVALID_REQUEST", "INVALID_REQUEST"], ONE_ANSWER_EACH
    ),
    "create_without_time": Difference(
        (["REQUEST_TIMED_OUT"], ["NONE"]),
        (["REQUEST_TIMED_OUT"], ["TOPIC_ALREADY_EXISTS"]),
        "a client that does not want to wait wants the topic all the same; Kafka drops the request",
    ),
    "alter_an_option_by_an_operation_that_does_not_exist": Difference(
        ["UNKNOWN_SERVER_ERROR"], ["INVALID_REQUEST"], "the mistake is the client's, and Kafka lets it fall through"
    ),
    "a_batch_of_a_later_magic": Difference(
        [("CORRUPT_MESSAGE", -1)], REFUSED, "CORRUPT_MESSAGE would be sent again, which does not mend a magic"
    ),
    "a_batch_whose_header_agrees_with_itself_and_not_with_its_records": Difference(REFUSED, TAKEN, BY_HEADER),
    "bytes_behind_the_last_record": Difference(REFUSED, TAKEN, BY_HEADER),
    "bytes_behind_the_last_compressed_record": Difference(REFUSED, TAKEN, BY_HEADER),
    "looking_for_a_record_later_than_the_largest_timestamp": Difference(
        LAST_FOUND, ("NONE", -1, -1), f"{BY_HEADER}; Kafka finds the largest timestamp anew"
    ),
    "a_batch_of_a_codec_that_it_is_not": Difference([("UNKNOWN_SERVER_ERROR", -1)], TAKEN, BY_HEADER),
    "a_batch_of_a_codec_that_does_not_exist": Difference(
        [("UNKNOWN_SERVER_ERROR", -1)], [("UNSUPPORTED_COMPRESSION_TYPE", -1)], "the mistake is the client's"
    ),
    "a_batch_that_claims_log_append_time": Difference(
        TAKEN, [("INVALID_TIMESTAMP", -1)], "Kafka clears the bit, and refuses it in other topics; no client sets it"
    ),
    "a_producer_id_without_an_epoch": Difference(
        TAKEN, REFUSED, "Kafka checks only the sequence; epoch -1 would count as older than any"
    ),
    "fetches_of_a_topic_that_is_compressed_with_zstd": Difference(
        ([("NONE", 0, -1, 0), ("NONE", 0, 0, 0), ("NONE", 0, 0, 0)], 3 * [("NONE", 3), OUT_OF_RANGE]),
        (
            [*2 * [(*NO_ZSTD, -1, 0)], ("NONE", 0, 0, 0)],
            [*4 * [NO_ZSTD], ("NONE", 3), OUT_OF_RANGE],
        ),
        "KIP-110 asks for it; Kafka 4.3.1 has lost the check, which looked at the topic's compression.type alone",
    ),
    "an_unknown_version_of_api_versions": Difference(
        ("UNSUPPORTED_VERSION", 1, "001200000004", 16),
        ("UNSUPPORTED_VERSION", 1, "001200000005", 16),
        "version 5 is Kafka 4.4's",
    ),
    "metadata_of_neither_name_nor_id": Difference(
        [("NONE", 2 * [UNFORESEEN]), (UNFORESEEN, 2 * [UNFORESEEN])],
        [("NONE", 2 * ["INVALID_REQUEST"]), ("INVALID_REQUEST", 2 * ["INVALID_REQUEST"])],
        "the mistake is the client's",
    ),
    "the_largest_timestamp_of_deleted_records": Difference(
        LAST_FOUND, ("NONE", -1, -1), "Kafka answers an offset before the log start"
    ),
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    with ApacheKafka(properties=OPTIONS) as running:
        yield running


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    data_dir = tmp_path_factory.mktemp("answers") / "data"
    with OdradekBroker(data_dir, "--node-id", "1", *settings_words(OPTIONS)) as running:
        yield running


def answer(broker: ApacheKafka | OdradekBroker, name: str) -> Answer:
    """Each question has a connection and a topic of its own."""
    topic = name.replace("_", "-")
    with Peer(broker.host, broker.port) as peer:
        peer.create_topic(topic)
        return QUESTIONS[name](peer, topic)


@pytest.mark.parametrize("name", QUESTIONS)
def test_both_answer_alike(kafka: ApacheKafka, odradek: OdradekBroker, name: str) -> None:
    theirs, ours = answer(kafka, name), answer(odradek, name)
    if name in DIFFERENT:
        assert (theirs, ours) == DIFFERENT[name][:2]
        assert theirs != ours
    else:
        assert ours == theirs


BY_RECORD = {
    "a_batch_whose_header_agrees_with_itself_and_not_with_its_records": (REFUSED, REFUSED),
    "bytes_behind_the_last_record": (REFUSED, REFUSED),
    "bytes_behind_the_last_compressed_record": (REFUSED, REFUSED),
    # Kafka says that it does not know what went wrong; we, that it is the batch.
    "a_batch_of_a_codec_that_it_is_not": ([("UNKNOWN_SERVER_ERROR", -1)], [("CORRUPT_MESSAGE", -1)]),
    "records_later_than_the_largest_timestamp": (TAKEN, TAKEN),
    "looking_for_a_record_later_than_the_largest_timestamp": (LAST_FOUND, LAST_FOUND),
    # Kafka compares offsets in compressed batches only.
    "a_gap_between_the_offsets_of_records": (TAKEN, REFUSED),
}
"""With `record.validation=full`: what Kafka answers, and we."""


@pytest.mark.parametrize("name", BY_RECORD)
def test_full_validation_refuses_what_kafka_refuses(kafka: ApacheKafka, odradek: OdradekBroker, name: str) -> None:
    """And a little more."""
    topic = f"{name.replace('_', '-')}-with-full"
    with Peer(kafka.host, kafka.port) as theirs, Peer(odradek.host, odradek.port) as ours:
        theirs.create_topic(topic)
        ours.create_topic(topic, record_validation="full")
        assert (QUESTIONS[name](theirs, topic), QUESTIONS[name](ours, topic)) == BY_RECORD[name]


def test_random_admin_requests_are_answered_alike_and_leave_the_same(
    kafka: ApacheKafka, odradek: OdradekBroker
) -> None:
    """Histories of two or three requests (`admin_fuzz.py`, which runs them by the hundred, on three brokers too)."""
    with both_of({1: (kafka.host, kafka.port)}, {1: (odradek.host, odradek.port)}) as clusters:
        found = clusters.differences(SEEDS)
        assert not found, "".join(told_of(seed, history(seed, 1), found[seed]) for seed in found)


def test_differences_belong_to_questions_and_have_reasons() -> None:
    assert [name for name in DIFFERENT if name not in QUESTIONS] == []
    assert [name for name, difference in DIFFERENT.items() if not difference.reason] == []
