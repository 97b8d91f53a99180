"""What a leader does to a client's batch before it appends it: checks it, and changes what the topic wants changed.

With Kafka's defaults the header decides alone, and the batch is appended as it came. More is done where the topic says:

    record.validation=full                   every record is walked
    cleanup.policy with compact              so that each has a key
    message.timestamp.type=LogAppendTime     the header gets the broker's time; no record is looked at
    message.timestamp.after.max.ms           CreateTime: the header's `max_timestamp` is compared; where that is too
                                             late, the records are walked, and say which of them are
    message.timestamp.before.max.ms          CreateTime: the records are walked, for the earliest stands nowhere else
    compression.type other than producer     the payload is compressed anew, unless it has that codec already

Where the records were walked, `max_timestamp` is made what they say, as Kafka does. Whatever happens, offset deltas,
producer fields and the records' own timestamps stay; a batch that is changed is a new one, in one copy.

Source: UnifiedLog.analyzeAndValidateRecords, LogValidator.java, KIP-467 (record errors). Which rules look into records,
and at which price: docs/decisions/005-record-validation.md.
"""

from enum import Enum
from typing import Final, NamedTuple

from odradek.broker.config.broker_config import TopicConfig
from odradek.broker.config.option import LONG_MAX
from odradek.protocol.batches.batch import HEADER_SIZE, BatchHeader, check_batch, read_header, rebuild_batch
from odradek.protocol.batches.compression import Codec, compress
from odradek.protocol.batches.records import CheckedRecords, Record, check_records, iterate_records, unpack_records
from odradek.protocol.errors import ErrorCode, KafkaError

__all__ = ["RECORD_ERRORS_MAX", "Origin", "RecordError", "RecordsRefused", "validated"]

LONG_MIN: Final = -LONG_MAX - 1
RECORD_ERRORS_MAX: Final = 1000
"""Of one batch. Kafka lists all, so that few bytes of compressed records could make an answer of gigabytes."""

_CODECS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}
"""By `compression.type`; `producer`, the codec that the batch has, is not in it."""

_GZIP_DEFAULT_LEVEL: Final = -1
_LZ4_FAST_LEVEL: Final = 9  # at the default level Lz4BlockOutputStream takes another compressor than at all others


class Origin(Enum):
    """Who made a batch (Kafka's AppendOrigin)."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    """This broker: it may be a control batch, and is what it says."""


_COORDINATOR: Final = Origin.COORDINATOR  # an enum looks its members up slowly, and each batch asks


class RecordError(NamedTuple):
    """What is wrong with one record of a batch. `batch_index` counts the batch's records from 0."""

    batch_index: int
    message: str


class RecordsRefused(KafkaError):
    """INVALID_RECORD or INVALID_TIMESTAMP, for the records named: at most `RECORD_ERRORS_MAX`, in their order."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


def validated(
    batch: memoryview, config: TopicConfig, now_ms: int, *, origin: Origin = Origin.CLIENT, with_zstd: bool = True
) -> tuple[memoryview, BatchHeader]:
    """The batch to append for the one that was given for a partition of this topic, and its header.

    Of a coordinator's nothing but the size is looked at. `with_zstd`: whether the client's version of Produce may bring
    it. Raises KafkaError: MESSAGE_TOO_LARGE (also when
    it became so by `compression.type`), UNSUPPORTED_COMPRESSION_TYPE, CORRUPT_MESSAGE, INVALID_RECORD,
    INVALID_TIMESTAMP; the last two may be RecordsRefused.
    """
    if len(batch) > config.max_message_bytes:
        raise _too_large(len(batch), config)
    if origin is _COORDINATOR:
        return batch, read_header(batch)
    header = check_batch(batch)
    if not with_zstd and header.codec is Codec.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs a later version of Produce (KIP-110)")
    if config.takes_batches_as_sent and header.max_timestamp - now_ms <= config.message_timestamp_after_max_ms:
        return batch, header
    return _as_the_topic_wants(batch, header, config, now_ms)


def _as_the_topic_wants(
    batch: memoryview, header: BatchHeader, config: TopicConfig, now_ms: int
) -> tuple[memoryview, BatchHeader]:
    codec = _CODECS.get(config.compression_type, header.codec)
    is_log_append_time = config.message_timestamp_type == "LogAppendTime"
    max_timestamp = header.max_timestamp
    checked: CheckedRecords | None = None
    if _must_look_at_records(header, config, now_ms):
        checked = check_records(batch, header)
        _check_rules(batch, checked, config, now_ms)
        max_timestamp = checked.max_timestamp_ms
    if is_log_append_time:
        max_timestamp = now_ms
    if codec is not header.codec:
        payload = unpack_records(batch, header) if checked is None else checked.payload
        records: bytes | memoryview = compress(codec, payload, _level(codec, config))
    elif is_log_append_time or max_timestamp != header.max_timestamp:
        records = batch[HEADER_SIZE:]
    else:
        return batch, header
    changed = memoryview(
        rebuild_batch(header, records, codec=codec, max_timestamp=max_timestamp, is_log_append_time=is_log_append_time)
    )
    if len(changed) > config.max_message_bytes:
        raise _too_large(len(changed), config)
    return changed, read_header(changed)


def _must_look_at_records(header: BatchHeader, config: TopicConfig, now_ms: int) -> bool:
    if config.record_validation == "full" or "compact" in config.cleanup_policy:
        return True
    return config.message_timestamp_type == "CreateTime" and (
        config.message_timestamp_before_max_ms != LONG_MAX
        or header.max_timestamp - now_ms > config.message_timestamp_after_max_ms
    )


def _check_rules(batch: memoryview, checked: CheckedRecords, config: TopicConfig, now_ms: int) -> None:
    """The rules for single records. Raises RecordsRefused."""
    requires_keys = "compact" in config.cleanup_policy
    bounds = _timestamp_bounds(config, now_ms)
    if (not requires_keys or not checked.keyless_count) and (
        bounds is None or (checked.min_timestamp_ms >= bounds[0] and checked.max_timestamp_ms <= bounds[1])
    ):
        return
    # One of them breaks a rule, unless it is early for having no timestamp (-1), which is allowed.
    code = ErrorCode.INVALID_RECORD
    refused_count = 0
    errors: list[RecordError] = []
    for index, record in enumerate(iterate_records(batch)):
        if requires_keys and record.key is None:
            why = "it has no key, and a compacted topic requires one"
        elif bounds is not None and _is_out_of(bounds, record):
            # As in Kafka, one such record makes it the code for all; clients go by the messages.
            code = ErrorCode.INVALID_TIMESTAMP
            why = f"its timestamp {record.timestamp_ms} is {_where(bounds)}"
        else:
            continue
        refused_count += 1
        if refused_count <= RECORD_ERRORS_MAX:
            errors.append(RecordError(index, why))
    if errors:
        index, why = errors[0]
        raise RecordsRefused(code, f"records refused: {refused_count}, the first is record {index}: {why}", errors)


def _timestamp_bounds(config: TopicConfig, now_ms: int) -> tuple[int, int] | None:
    """The earliest and the latest timestamp that a record may have; None where the broker's time replaces it.

    A bound that is not set is the first or the last timestamp that there is.
    """
    if config.message_timestamp_type == "LogAppendTime":
        return None
    before_ms, after_ms = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    return (
        LONG_MIN if before_ms == LONG_MAX else now_ms - before_ms,
        LONG_MAX if after_ms == LONG_MAX else now_ms + after_ms,
    )


def _where(bounds: tuple[int, int]) -> str:
    """Where a timestamp is that `bounds` refuse; only those that are set are named."""
    earliest_ms, latest_ms = bounds
    if earliest_ms == LONG_MIN:
        return f"after {latest_ms}"
    return f"before {earliest_ms}" if latest_ms == LONG_MAX else f"not between {earliest_ms} and {latest_ms}"


def _is_out_of(bounds: tuple[int, int], record: Record) -> bool:
    return record.timestamp_ms != -1 and not bounds[0] <= record.timestamp_ms <= bounds[1]


def _level(codec: Codec, config: TopicConfig) -> int | None:
    """The level that the topic wants; None for the codec's default."""
    match codec:
        case Codec.GZIP:
            level = config.compression_gzip_level
            return None if level == _GZIP_DEFAULT_LEVEL else level
        case Codec.LZ4:
            level = config.compression_lz4_level
            return None if level == _LZ4_FAST_LEVEL else level
        case Codec.ZSTD:
            return config.compression_zstd_level
        case _:
            return None


def _too_large(size_bytes: int, config: TopicConfig) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of {size_bytes} bytes; max.message.bytes is {config.max_message_bytes}",
    )
