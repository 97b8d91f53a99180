"""What a topic may set for itself, one row each; each names the broker option that counts where a topic has no value of
its own (broker_options.py, where the rules of these rows stand)."""

from typing import Any

from odradek.broker.config.option import (
    BOOLEAN,
    CODECS,
    DAY_MS,
    DOUBLE,
    HOUR_MS,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    MINUTE_MS,
    STORED,
    STRING,
    Option,
    gzip_level,
    rows,
)


def _no_tiered_storage(value: bool) -> str | None:
    return "tiered storage is not built; it must be false" if value else None


def _throttled_replicas(values: tuple[str, ...]) -> str | None:
    """ThrottledReplicaListValidator: `*`, or pairs of numbers."""
    pairs = (value.split(":") for value in values)
    if values == ("*",) or all(len(pair) == 2 and all(part.strip().isdecimal() for part in pair) for pair in pairs):
        return None
    return "it must be * or a list of PARTITION:BROKER"


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class TopicOptions:
    """What a topic may set for itself, in order of the names."""

    cleanup_policy = Option[tuple[str, ...]](
        "cleanup.policy", LIST, ("delete",), "What happens to old segments: they are deleted, or compacted by key.",
        choices=("compact", "delete"), synonym="log.cleanup.policy",
    )
    compression_gzip_level = Option(
        "compression.gzip.level", INT, -1, "The level when the broker compresses with gzip.",
        check=gzip_level, synonym="compression.gzip.level",
    )
    compression_lz4_level = Option(
        "compression.lz4.level", INT, 9, "The level when the broker compresses with lz4; 9 is the fast way.",
        minimum=1, maximum=17, synonym="compression.lz4.level",
    )
    compression_type = Option(
        "compression.type", STRING, "producer", "The codec that batches are stored in; `producer` keeps what arrived.",
        choices=CODECS, synonym="compression.type",
    )
    compression_zstd_level = Option(
        "compression.zstd.level", INT, 3, "The level when the broker compresses with zstd.",
        minimum=-131072, maximum=22, synonym="compression.zstd.level",
    )
    delete_retention_ms = Option(
        "delete.retention.ms", LONG, DAY_MS, "How long compaction keeps the marker of a deleted key.",
        minimum=0, unit="ms", synonym="log.cleaner.delete.retention.ms",
    )
    file_delete_delay_ms = Option(
        "file.delete.delay.ms", LONG, MINUTE_MS, "How long the files of a deleted segment stay.",
        minimum=0, unit="ms", synonym="log.segment.delete.delay.ms",
    )
    flush_messages = Option(
        "flush.messages", LONG, LONG_MAX, "After how many records the log is synced to the device.",
        minimum=1, synonym="log.flush.interval.messages",
    )
    flush_ms = Option(
        "flush.ms", LONG, LONG_MAX, "After how long the log is synced to the device.",
        minimum=0, unit="ms", synonym="log.flush.interval.ms",
    )
    follower_replication_throttled_replicas = Option[tuple[str, ...]](
        "follower.replication.throttled.replicas", LIST, (), "Replicas whose fetching is throttled, or `*`.",
        check=_throttled_replicas,
    )
    index_interval_bytes = Option(
        "index.interval.bytes", INT, 4096, "How many bytes of the log lie between two entries of its indexes.",
        minimum=0, unit="bytes", synonym="log.index.interval.bytes",
    )
    leader_replication_throttled_replicas = Option[tuple[str, ...]](
        "leader.replication.throttled.replicas", LIST, (), "Leading replicas whose sending is throttled, or `*`.",
        check=_throttled_replicas,
    )
    local_retention_bytes = Option(
        "local.retention.bytes", LONG, -2, "With tiered storage, how much stays here; -2 is `retention.bytes`.",
        minimum=-2, unit="bytes", effect=STORED, synonym="log.local.retention.bytes",
    )
    local_retention_ms = Option(
        "local.retention.ms", LONG, -2, "With tiered storage, how long it stays here; -2 is `retention.ms`.",
        minimum=-2, unit="ms", effect=STORED, synonym="log.local.retention.ms",
    )
    max_compaction_lag_ms = Option(
        "max.compaction.lag.ms", LONG, LONG_MAX, "How long a record may escape compaction.",
        minimum=1, unit="ms", synonym="log.cleaner.max.compaction.lag.ms",
    )
    max_message_bytes = Option(
        "max.message.bytes", INT, 1048588, "The largest batch, as it is sent and as it is stored, header included.",
        minimum=0, unit="bytes", synonym="message.max.bytes",
    )
    message_timestamp_after_max_ms = Option(
        "message.timestamp.after.max.ms", LONG, HOUR_MS, "How far a timestamp may lie after the broker's clock.",
        minimum=0, unit="ms", synonym="log.message.timestamp.after.max.ms",
    )
    message_timestamp_before_max_ms = Option(
        "message.timestamp.before.max.ms", LONG, LONG_MAX, "How far a timestamp may lie before the broker's clock.",
        minimum=0, unit="ms", synonym="log.message.timestamp.before.max.ms",
    )
    message_timestamp_type = Option(
        "message.timestamp.type", STRING, "CreateTime", "Whether timestamps are the producer's or the broker's.",
        choices=("CreateTime", "LogAppendTime"), synonym="log.message.timestamp.type",
    )
    min_cleanable_dirty_ratio = Option(
        "min.cleanable.dirty.ratio", DOUBLE, 0.5, "The part of a log that is not compacted before compaction begins.",
        minimum=0, maximum=1, synonym="log.cleaner.min.cleanable.ratio",
    )
    min_compaction_lag_ms = Option(
        "min.compaction.lag.ms", LONG, 0, "How long a record is spared by compaction.",
        minimum=0, unit="ms", synonym="log.cleaner.min.compaction.lag.ms",
    )
    min_insync_replicas = Option(
        "min.insync.replicas", INT, 1,
        "How many replicas must be in sync for acks=all; never more than the replication factor.",
        minimum=1, synonym="min.insync.replicas",
        deviation="Kafka 4.3.1 reports the default as a cluster-wide setting, which its format command makes.",
    )
    preallocate = Option(
        "preallocate", BOOLEAN, False, "Whether a new segment's file is made in its full size.",
        synonym="log.preallocate",
    )
    record_validation = Option(
        "record.validation", STRING, "header",
        "How a batch is checked: by its header and checksum, or in full, record by record, as Kafka does.",
        choices=("header", "full"), synonym="record.validation", deviation="Odradek's own.",
    )
    remote_log_copy_disable = Option(
        "remote.log.copy.disable", BOOLEAN, False, "Whether tiered storage stops taking new segments.",
        refuse=_no_tiered_storage,
    )
    remote_log_delete_on_disable = Option(
        "remote.log.delete.on.disable", BOOLEAN, False, "Whether switching tiered storage off deletes what it holds.",
        refuse=_no_tiered_storage,
    )
    remote_storage_enable = Option(
        "remote.storage.enable", BOOLEAN, False, "Whether the topic uses tiered storage.", refuse=_no_tiered_storage,
    )
    retention_bytes = Option(
        "retention.bytes", LONG, -1, "How large a partition may grow before old segments go; -1 is without limit.",
        minimum=-1, unit="bytes", synonym="log.retention.bytes",
        deviation="Less than -1 is refused; Kafka takes it for -1.",
    )
    retention_ms = Option(
        "retention.ms", LONG, 7 * DAY_MS, "How long records stay before old segments go; -1 is for ever.",
        minimum=-1, unit="ms", synonym="log.retention.ms",
    )
    segment_bytes = Option(
        "segment.bytes", INT, 1024**3, "The size at which a new segment begins.",
        minimum=1024**2, unit="bytes", synonym="log.segment.bytes",
    )
    segment_index_bytes = Option(
        "segment.index.bytes", INT, 10 * 1024**2, "The size at which an index is full, and a new segment begins.",
        minimum=4, unit="bytes", synonym="log.index.size.max.bytes",
    )
    segment_jitter_ms = Option(
        "segment.jitter.ms", LONG, 0, "A random part of this is taken off `segment.ms`.",
        minimum=0, unit="ms", synonym="log.roll.jitter.ms",
    )
    segment_ms = Option(
        "segment.ms", LONG, 7 * DAY_MS, "The age at which a new segment begins, by the records' timestamps.",
        minimum=1, unit="ms", synonym="log.roll.ms",
    )
    unclean_leader_election_enable = Option(
        "unclean.leader.election.enable", BOOLEAN, False,
        "Whether a replica outside the in-sync set may lead when none of the set is left, losing records.",
        synonym="unclean.leader.election.enable",
    )
# fmt: on


TOPIC_OPTIONS: dict[str, Option[Any]] = rows(TopicOptions)
