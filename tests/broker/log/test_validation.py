"""What a leader makes of a client's batch: rule by rule, then any batch under any settings beside an obvious model.

Batches with mistakes come from `plain`, whose encoder shares no code with ours.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.config.broker_config import BrokerConfig, TopicConfig
from odradek.broker.config.option import LONG_MAX
from odradek.broker.log.validation import RECORD_ERRORS_MAX, RecordsRefused, validated
from odradek.protocol.batches.batch import HEADER_SIZE, BatchHeader, crc_matches, read_header
from odradek.protocol.batches.compression import Codec, compress
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_records
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.protocol import plain

NOW = 1_700_000_000_000
HOUR_MS = 3_600_000
VALUE = b"a value that can be compressed " * 20
RECORDS = [
    Record(0, NOW - 5, b"k", VALUE),
    Record(1, NOW + 7, b"", None, (("h", b"1"),)),
    Record(2, NOW, b"key", b""),
]
CODECS = {"uncompressed": Codec.NONE, "gzip": Codec.GZIP, "snappy": Codec.SNAPPY, "lz4": Codec.LZ4, "zstd": Codec.ZSTD}


def topic(**options: object) -> TopicConfig:
    """`message_timestamp_type="LogAppendTime"` and the like."""
    return BrokerConfig().topic({name.replace("_", "."): str(value) for name, value in options.items()})


def appended(batch: bytes, config: TopicConfig, now_ms: int = NOW) -> tuple[bytes, BatchHeader]:
    """The batch that would be appended, which is whole in itself."""
    result, header = validated(memoryview(batch), config, now_ms)
    assert header == read_header(result)
    assert header.size_bytes == len(result)
    assert crc_matches(result)
    return bytes(result), header


def is_untouched(batch: bytes, config: TopicConfig, now_ms: int = NOW) -> bool:
    """Whether the very bytes that were sent are appended, not a copy of them."""
    view = memoryview(batch)
    return validated(view, config, now_ms)[0] is view


def refusal(batch: bytes, config: TopicConfig, now_ms: int = NOW) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        validated(memoryview(batch), config, now_ms)
    return caught.value


def blamed(batch: bytes, config: TopicConfig, now_ms: int = NOW) -> tuple[ErrorCode, list[int]]:
    """The code, and which records are named."""
    error = refusal(batch, config, now_ms)
    assert isinstance(error, RecordsRefused)
    assert all(each.message for each in error.record_errors)
    return error.code, [each.batch_index for each in error.record_errors]


def timed(*timestamps_ms: int, keys: Sequence[bytes | None] = ()) -> bytes:
    """A batch of records with these timestamps, and keys if they are given."""
    keys = keys or [None] * len(timestamps_ms)
    return build_batch([Record(n, ms, key, b"v") for n, (ms, key) in enumerate(zip(timestamps_ms, keys, strict=True))])


def of_a_producer(records: Sequence[Record], codec: Codec) -> bytes:
    """A batch whose header has every field of a producer."""
    return build_batch(records, codec=codec, producer_id=7, producer_epoch=3, base_sequence=11, is_transactional=True)


def poisonous(codec: Codec = Codec.NONE, *, max_timestamp: int = NOW) -> bytes:
    """A batch whose header and checksum are right, and whose payload is no records."""
    payload = compress(codec, bytes(70))
    return plain.batch(payload=payload, attributes=codec, record_count=9, max_timestamp=max_timestamp)


# -- the usual topic --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_with_kafkas_defaults_a_batch_is_appended_as_it_came(codec: Codec) -> None:
    assert is_untouched(build_batch(RECORDS, codec=codec), topic())
    assert is_untouched(poisonous(codec), topic())


@pytest.mark.parametrize(
    ("name", "value", "as_sent"),
    [
        ("record.validation", "full", False),
        ("cleanup.policy", "compact", False),
        ("cleanup.policy", "delete,compact", False),
        ("cleanup.policy", "", True),
        ("message.timestamp.type", "LogAppendTime", False),
        ("message.timestamp.before.max.ms", "9223372036854775806", False),
        ("message.timestamp.before.max.ms", "9223372036854775807", True),
        ("message.timestamp.after.max.ms", "1", True),
        ("compression.type", "uncompressed", False),
        ("compression.type", "producer", True),
        ("compression.gzip.level", "9", True),
    ],
)
def test_what_takes_more_than_a_look_at_the_header(name: str, value: str, as_sent: bool) -> None:
    assert topic(**{name: value}).takes_batches_as_sent is as_sent


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (plain.batch(crc=1), ErrorCode.CORRUPT_MESSAGE),
        (plain.batch(attributes=5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (plain.batch(attributes=8), ErrorCode.INVALID_TIMESTAMP),
    ],
)
@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_a_bad_header_is_refused_whatever_the_topic_wants(batch: bytes, code: ErrorCode, timestamp_type: str) -> None:
    error = refusal(batch, topic(message_timestamp_type=timestamp_type))
    assert error.code is code
    assert not isinstance(error, RecordsRefused)


@pytest.mark.parametrize("options", [{}, {"compression_type": "gzip"}])
def test_zstd_where_the_version_of_produce_does_not_know_it(options: dict[str, str]) -> None:
    """What counts is the codec that was sent, not the one that is stored."""
    with pytest.raises(KafkaError) as caught:
        validated(memoryview(build_batch(RECORDS, codec=Codec.ZSTD)), topic(**options), NOW, with_zstd=False)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    validated(memoryview(build_batch(RECORDS, codec=Codec.GZIP)), topic(**options), NOW, with_zstd=False)


def test_the_size_is_looked_at_before_anything_else() -> None:
    batch = build_batch(RECORDS)
    assert is_untouched(batch, topic(max_message_bytes=len(batch)))
    for config in (topic(max_message_bytes=len(batch) - 1), topic(max_message_bytes=300, compression_type="zstd")):
        assert refusal(batch, config).code is ErrorCode.MESSAGE_TOO_LARGE
        assert refusal(b"?" * len(batch), config).code is ErrorCode.MESSAGE_TOO_LARGE


# -- timestamps -------------------------------------------------------------------------------------------------------


def test_a_record_may_be_an_hour_ahead_of_the_clock_unless_told_otherwise() -> None:
    assert is_untouched(timed(NOW, NOW + HOUR_MS), topic())
    assert blamed(timed(NOW, NOW + HOUR_MS + 1, NOW + HOUR_MS), topic()) == (ErrorCode.INVALID_TIMESTAMP, [1])
    config = topic(message_timestamp_after_max_ms=10)
    assert is_untouched(timed(NOW + 10, NOW), config)
    assert is_untouched(poisonous(max_timestamp=NOW + 10), config), "the header is enough"
    assert blamed(timed(NOW + 11, NOW, NOW + 12), config) == (ErrorCode.INVALID_TIMESTAMP, [0, 2])


def test_the_clock_counts_that_is_handed_in() -> None:
    batch = timed(NOW)
    assert is_untouched(batch, topic(), NOW - HOUR_MS)
    assert blamed(batch, topic(), NOW - HOUR_MS - 1) == (ErrorCode.INVALID_TIMESTAMP, [0])


def test_a_record_may_be_as_old_as_the_topic_allows() -> None:
    config = topic(message_timestamp_before_max_ms=10)
    assert is_untouched(timed(NOW, NOW - 10), config)
    assert blamed(timed(NOW, NOW - 11, NOW - 10, 0), config) == (ErrorCode.INVALID_TIMESTAMP, [1, 3])
    assert is_untouched(timed(NOW, 0, -5), topic()), "the default is without bound"


def test_a_record_without_a_timestamp_is_never_too_early() -> None:
    config = topic(message_timestamp_before_max_ms=10)
    assert is_untouched(timed(NOW, -1), config)
    assert is_untouched(timed(-1), config)
    assert blamed(timed(NOW, -1, -2, 0), config) == (ErrorCode.INVALID_TIMESTAMP, [2, 3])


def test_what_is_wrong_with_a_record_is_said() -> None:
    error = refusal(
        timed(NOW, NOW - 11, NOW + 6), topic(message_timestamp_before_max_ms=10, message_timestamp_after_max_ms=5)
    )
    assert isinstance(error, RecordsRefused)
    assert [message for _, message in error.record_errors] == [
        f"its timestamp {NOW - 11} is not between {NOW - 10} and {NOW + 5}",
        f"its timestamp {NOW + 6} is not between {NOW - 10} and {NOW + 5}",
    ]
    assert error.message == f"records refused: 2, the first is record 1: {error.record_errors[0].message}"


def test_a_bound_that_is_not_set_is_not_named() -> None:
    late = refusal(timed(NOW + HOUR_MS + 1), topic())
    assert late.message.endswith(f": its timestamp {NOW + HOUR_MS + 1} is after {NOW + HOUR_MS}")
    early = refusal(timed(NOW - 11), topic(message_timestamp_before_max_ms=10, message_timestamp_after_max_ms=LONG_MAX))
    assert early.message.endswith(f": its timestamp {NOW - 11} is before {NOW - 10}")


def test_a_bound_that_is_not_set_refuses_nothing() -> None:
    config = topic(message_timestamp_after_max_ms=LONG_MAX)
    assert is_untouched(timed(-(2**63)), config)
    assert is_untouched(timed(2**63 - 1), config)


@pytest.mark.parametrize("codec", Codec)
def test_a_header_that_is_too_late_is_corrected_where_the_records_are_not(codec: Codec) -> None:
    """A largest timestamp that no record has would keep the segment from being deleted."""
    batch = build_batch(RECORDS, codec=codec)
    lying = plain.resealed(batch[:35] + (NOW + 2 * HOUR_MS).to_bytes(8, "big") + batch[43:])
    assert appended(lying, topic())[0] == batch


@pytest.mark.parametrize("claimed", [-1, NOW, NOW + 6, NOW + 8])
@pytest.mark.parametrize("codec", Codec)
def test_a_max_timestamp_that_no_record_has_is_corrected_where_records_are_read(codec: Codec, claimed: int) -> None:
    batch = of_a_producer(RECORDS, codec)
    lying = plain.resealed(batch[:35] + claimed.to_bytes(8, "big", signed=True) + batch[43:])
    for config in (
        topic(record_validation="full"),
        topic(cleanup_policy="compact"),
        topic(message_timestamp_before_max_ms=HOUR_MS),
    ):
        assert appended(lying, config)[0] == batch
        assert is_untouched(batch, config)
    assert is_untouched(lying, topic()), "by the header alone it cannot be seen"


# -- the broker's time ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", Codec)
def test_log_append_time_stands_in_the_header_and_the_rest_stays(codec: Codec) -> None:
    batch = of_a_producer(RECORDS, codec)
    before = read_header(batch)
    stored, after = appended(batch, topic(message_timestamp_type="LogAppendTime"), NOW + 99)
    assert after.is_log_append_time
    assert after == before._replace(attributes=before.attributes | 8, max_timestamp=NOW + 99, crc=after.crc)
    assert stored[HEADER_SIZE:] == batch[HEADER_SIZE:]
    assert list(iterate_records(stored)) == [record._replace(timestamp_ms=NOW + 99) for record in RECORDS]


def test_log_append_time_needs_no_look_at_the_records_and_sets_no_bounds_on_theirs() -> None:
    config = topic(
        message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1, message_timestamp_after_max_ms=1
    )
    for timestamp_ms in (NOW + 2 * HOUR_MS, 0, -1):
        assert appended(timed(timestamp_ms), config)[1].max_timestamp == NOW
        assert appended(poisonous(max_timestamp=timestamp_ms), config)[1].max_timestamp == NOW
    full = topic(message_timestamp_type="LogAppendTime", record_validation="full", message_timestamp_before_max_ms=1)
    assert appended(timed(0), full)[1].max_timestamp == NOW
    assert refusal(poisonous(), full).code is ErrorCode.INVALID_RECORD


def test_log_append_time_is_written_even_where_the_records_have_that_very_time() -> None:
    assert appended(timed(NOW), topic(message_timestamp_type="LogAppendTime"))[1].is_log_append_time


# -- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["compact", "delete,compact"])
@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_a_compacted_topic_takes_records_with_keys_only(policy: str, timestamp_type: str) -> None:
    config = topic(cleanup_policy=policy, message_timestamp_type=timestamp_type)
    appended(timed(NOW, NOW, keys=[b"", b"k"]), config)
    keyless = timed(NOW, NOW, NOW, keys=[None, b"k", None])
    assert blamed(keyless, config) == (ErrorCode.INVALID_RECORD, [0, 2])
    assert is_untouched(keyless, topic(cleanup_policy="delete", record_validation="full"))


def test_one_bad_timestamp_makes_it_the_code_for_all() -> None:
    """As Kafka's LogValidator.processRecordErrors; of a record that is wrong twice, the key is named."""
    config = topic(cleanup_policy="compact", message_timestamp_after_max_ms=0)
    batch = timed(NOW, NOW, NOW + 1, keys=[None, b"k", b"k"])
    assert blamed(batch, config) == (ErrorCode.INVALID_TIMESTAMP, [0, 2])
    assert blamed(timed(NOW + 1, keys=[None]), config) == (ErrorCode.INVALID_RECORD, [0])


def test_only_so_many_records_are_named() -> None:
    count = RECORD_ERRORS_MAX + 5
    error = refusal(timed(*[NOW] * count), topic(cleanup_policy="compact"))
    assert isinstance(error, RecordsRefused)
    assert [index for index, _ in error.record_errors] == list(range(RECORD_ERRORS_MAX))
    assert error.message.startswith(f"records refused: {count},")


# -- walking the records ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"record_validation": "full"},
        {"cleanup_policy": "compact"},
        {"message_timestamp_before_max_ms": HOUR_MS},
        {"message_timestamp_after_max_ms": 0},
    ],
)
@pytest.mark.parametrize("codec", Codec)
def test_records_that_are_none_are_found_where_they_are_walked(codec: Codec, options: dict[str, object]) -> None:
    error = refusal(poisonous(codec, max_timestamp=NOW + 1), topic(**options))
    assert error.code is ErrorCode.INVALID_RECORD
    assert not isinstance(error, RecordsRefused), "no single record is to blame, as in Kafka"


# -- compressing anew -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("name", CODECS)
def test_a_batch_gets_the_codec_of_its_topic(source: Codec, name: str) -> None:
    target = CODECS[name]
    batch = of_a_producer(RECORDS, source)
    config = topic(compression_type=name)
    if source is target:
        assert is_untouched(batch, config)
        return
    stored, after = appended(batch, config)
    assert stored == of_a_producer(RECORDS, target)
    assert after.codec is target


@pytest.mark.parametrize(
    ("name", "level", "codecs_level"),
    [
        ("gzip", -1, None),
        ("gzip", 1, 1),
        ("gzip", 9, 9),
        ("lz4", 9, None),
        ("lz4", 3, 3),
        ("lz4", 17, 17),
        ("zstd", 3, None),
        ("zstd", -7, -7),
        ("zstd", 19, 19),
    ],
)
def test_the_level_is_the_topics_and_kafkas_default_the_codecs(name: str, level: int, codecs_level: int | None) -> None:
    records = [Record(n, NOW, None, b"%d %d %d" % (n * 7919 % 97, n % 13, n)) for n in range(2_000)]
    stored, _ = appended(build_batch(records), topic(compression_type=name, **{f"compression_{name}_level": level}))
    assert stored == build_batch(records, codec=CODECS[name], level=codecs_level)
    if level not in (-1, 3, 9):
        assert stored != build_batch(records, codec=CODECS[name]), "this level does make a difference"


def test_compressing_and_stamping_go_together() -> None:
    config = topic(compression_type="zstd", message_timestamp_type="LogAppendTime")
    stored, header = appended(build_batch(RECORDS, codec=Codec.GZIP), config, NOW + 1)
    assert (header.codec, header.is_log_append_time, header.base_timestamp) == (Codec.ZSTD, True, NOW - 5)
    assert list(iterate_records(stored)) == [record._replace(timestamp_ms=NOW + 1) for record in RECORDS]


def test_compressing_needs_no_look_at_the_records_unless_the_topic_wants_one() -> None:
    batch = poisonous(Codec.LZ4)
    assert appended(batch, topic(compression_type="uncompressed"))[0] == poisonous()
    config = topic(compression_type="uncompressed", record_validation="full")
    assert refusal(batch, config).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_what_does_not_decompress_is_corrupt(codec: Codec) -> None:
    batch = plain.batch(payload=b"this was never compressed", attributes=codec)
    other = "gzip" if codec is not Codec.GZIP else "zstd"
    assert refusal(batch, topic(compression_type=other)).code is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_that_became_too_large_is_refused() -> None:
    small, large = build_batch(RECORDS, codec=Codec.ZSTD), build_batch(RECORDS)
    assert appended(small, topic(compression_type="uncompressed", max_message_bytes=len(large)))[0] == large
    error = refusal(small, topic(compression_type="uncompressed", max_message_bytes=len(large) - 1))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert f"a batch of {len(large)} bytes" in error.message


# -- anything, beside a model -----------------------------------------------------------------------------------------

TIMES = st.sampled_from([-1, 0, NOW - 11, NOW - 10, NOW, NOW + 10, NOW + 11, NOW + 2 * HOUR_MS])
KEYS = st.sampled_from([None, b"", b"k"])
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "record_validation": st.sampled_from(["header", "full"]),
        "cleanup_policy": st.sampled_from(["delete", "compact", "compact,delete"]),
        "compression_type": st.sampled_from(["producer", *CODECS]),
        "message_timestamp_type": st.sampled_from(["CreateTime", "LogAppendTime"]),
        "message_timestamp_before_max_ms": st.sampled_from([10, HOUR_MS]),
        "message_timestamp_after_max_ms": st.sampled_from([0, 10]),
    },
)


def model(records: list[Record], config: TopicConfig) -> tuple[ErrorCode, list[int]]:
    """What Kafka says to these records: a code, and who is to blame."""
    keyless, mistimed = set[int](), set[int]()
    for index, record in enumerate(records):
        if "compact" in config.cleanup_policy and record.key is None:
            keyless.add(index)
        elif config.message_timestamp_type == "CreateTime" and record.timestamp_ms != -1:
            age_ms = NOW - record.timestamp_ms
            if age_ms > config.message_timestamp_before_max_ms or -age_ms > config.message_timestamp_after_max_ms:
                mistimed.add(index)
    code = ErrorCode.INVALID_TIMESTAMP if mistimed else ErrorCode.INVALID_RECORD if keyless else ErrorCode.NONE
    return code, sorted(keyless | mistimed)


@settings(max_examples=300)
@given(st.lists(st.tuples(TIMES, KEYS), min_size=1, max_size=5), st.sampled_from(Codec), SETTINGS)
def test_any_batch_under_any_settings(
    drawn: list[tuple[int, bytes | None]], source: Codec, options: dict[str, object]
) -> None:
    records = [Record(n, ms, key, VALUE) for n, (ms, key) in enumerate(drawn)]
    batch = of_a_producer(records, source)
    config = topic(**options)
    expected = model(records, config)
    if expected[0] is not ErrorCode.NONE:
        assert blamed(batch, config) == expected
        return
    stored, header = appended(batch, config)
    is_stamped = config.message_timestamp_type == "LogAppendTime"
    kept = [record._replace(timestamp_ms=NOW) for record in records] if is_stamped else records
    assert list(iterate_records(stored)) == kept
    assert header.codec is CODECS.get(config.compression_type, source)
    before = read_header(batch)
    assert header == before._replace(
        batch_length=header.batch_length,
        crc=header.crc,
        attributes=before.attributes & ~7 | header.codec | 8 * is_stamped,
        max_timestamp=NOW if is_stamped else before.max_timestamp,
    )
