"""The options that a log obeys, under Kafka's names and with Kafka's defaults."""

from dataclasses import dataclass

_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class LogConfig:
    """A topic's options, and of the broker's those that concern each log."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    preallocate: bool = False
    producer_id_expiration_ms: int = _DAY_MS
    is_compacted: bool = False
    """Whether offsets may be missing between two batches (`cleanup.policy`)."""
