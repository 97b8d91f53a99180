"""Every option, one row each: Kafka's names, types, bounds and the defaults of Kafka 4.3.1 (tests compare them).

`TopicOptions` are what Kafka reports for a topic; each names the broker option that counts where the topic has no value
of its own. `BrokerOptions` are those that this broker has an effect for, or that topics inherit. A value whose effect
is not built yet is refused, where storing it would promise something: `refuse` says why. Where it would merely be
without effect it is stored and reported: `Effect.STORED`. A difference from Kafka stands in `deviation`.

docs/configuration.md is made from these rows (configuration_page.py).
"""

import sys
from typing import Any

from broker.listeners import check_listeners
from broker.option import INT_MAX, LONG_MAX, ConfigType, Dynamic, Effect, Fallback, Option

_BOOLEAN, _STRING, _INT, _LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
_DOUBLE, _LIST = ConfigType.DOUBLE, ConfigType.LIST
_CLUSTER_WIDE = Dynamic.CLUSTER_WIDE
_STORED = Effect.STORED

_DAY_MS = 24 * 60 * 60 * 1000
_HOUR_MS = 60 * 60 * 1000
_MINUTE_MS = 60 * 1000
_INTERNAL = "Kafka takes it, too, but does not describe it."
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _no_tiered_storage(value: bool) -> str | None:
    return "tiered storage is not built; it must be false" if value else None


def _throttled_replicas(values: tuple[str, ...]) -> str | None:
    """ThrottledReplicaListValidator: `*`, or pairs of numbers."""
    pairs = (value.split(":") for value in values)
    if values == ("*",) or all(len(pair) == 2 and all(part.strip().isdecimal() for part in pair) for pair in pairs):
        return None
    return "it must be * or a list of PARTITION:BROKER"


def _gzip_level(level: int) -> str | None:
    return None if level == -1 or 1 <= level <= 9 else "it must be -1 (the codec's default) or between 1 and 9"


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class TopicOptions:
    """What a topic may set for itself, in order of the names."""

    cleanup_policy = Option[tuple[str, ...]](
        "cleanup.policy", _LIST, ("delete",), "What happens to old segments: they are deleted, or compacted by key.",
        choices=("compact", "delete"), synonym="log.cleanup.policy",
    )
    compression_gzip_level = Option(
        "compression.gzip.level", _INT, -1, "The level when the broker compresses with gzip.",
        check=_gzip_level, synonym="compression.gzip.level",
    )
    compression_lz4_level = Option(
        "compression.lz4.level", _INT, 9, "The level when the broker compresses with lz4; 9 is the fast way.",
        minimum=1, maximum=17, synonym="compression.lz4.level",
    )
    compression_type = Option(
        "compression.type", _STRING, "producer", "The codec that batches are stored in; `producer` keeps what arrived.",
        choices=_CODECS, synonym="compression.type",
    )
    compression_zstd_level = Option(
        "compression.zstd.level", _INT, 3, "The level when the broker compresses with zstd.",
        minimum=-131072, maximum=22, synonym="compression.zstd.level",
    )
    delete_retention_ms = Option(
        "delete.retention.ms", _LONG, _DAY_MS, "How long compaction keeps the marker of a deleted key.",
        minimum=0, unit="ms", synonym="log.cleaner.delete.retention.ms",
    )
    file_delete_delay_ms = Option(
        "file.delete.delay.ms", _LONG, _MINUTE_MS, "How long the files of a deleted segment stay.",
        minimum=0, unit="ms", synonym="log.segment.delete.delay.ms",
    )
    flush_messages = Option(
        "flush.messages", _LONG, LONG_MAX, "After how many records the log is synced to the device.",
        minimum=1, synonym="log.flush.interval.messages",
    )
    flush_ms = Option(
        "flush.ms", _LONG, LONG_MAX, "After how long the log is synced to the device.",
        minimum=0, unit="ms", synonym="log.flush.interval.ms",
    )
    follower_replication_throttled_replicas = Option[tuple[str, ...]](
        "follower.replication.throttled.replicas", _LIST, (), "Replicas whose fetching is throttled, or `*`.",
        check=_throttled_replicas, effect=_STORED,
    )
    index_interval_bytes = Option(
        "index.interval.bytes", _INT, 4096, "How many bytes of the log lie between two entries of its indexes.",
        minimum=0, unit="bytes", synonym="log.index.interval.bytes",
    )
    leader_replication_throttled_replicas = Option[tuple[str, ...]](
        "leader.replication.throttled.replicas", _LIST, (), "Replicas to which the leader is throttled, or `*`.",
        check=_throttled_replicas, effect=_STORED,
    )
    local_retention_bytes = Option(
        "local.retention.bytes", _LONG, -2, "With tiered storage, how much stays here; -2 is `retention.bytes`.",
        minimum=-2, unit="bytes", effect=_STORED, synonym="log.local.retention.bytes",
    )
    local_retention_ms = Option(
        "local.retention.ms", _LONG, -2, "With tiered storage, how long it stays here; -2 is `retention.ms`.",
        minimum=-2, unit="ms", effect=_STORED, synonym="log.local.retention.ms",
    )
    max_compaction_lag_ms = Option(
        "max.compaction.lag.ms", _LONG, LONG_MAX, "How long a record may escape compaction.",
        minimum=1, unit="ms", synonym="log.cleaner.max.compaction.lag.ms",
    )
    max_message_bytes = Option(
        "max.message.bytes", _INT, 1048588, "The largest batch, as it is sent and as it is stored, header included.",
        minimum=0, unit="bytes", synonym="message.max.bytes",
    )
    message_timestamp_after_max_ms = Option(
        "message.timestamp.after.max.ms", _LONG, _HOUR_MS, "How far a timestamp may lie after the broker's clock.",
        minimum=0, unit="ms", synonym="log.message.timestamp.after.max.ms",
    )
    message_timestamp_before_max_ms = Option(
        "message.timestamp.before.max.ms", _LONG, LONG_MAX, "How far a timestamp may lie before the broker's clock.",
        minimum=0, unit="ms", synonym="log.message.timestamp.before.max.ms",
    )
    message_timestamp_type = Option(
        "message.timestamp.type", _STRING, "CreateTime", "Whether timestamps are the producer's or the broker's.",
        choices=("CreateTime", "LogAppendTime"), synonym="log.message.timestamp.type",
    )
    min_cleanable_dirty_ratio = Option(
        "min.cleanable.dirty.ratio", _DOUBLE, 0.5, "The part of a log that is not compacted before compaction begins.",
        minimum=0, maximum=1, synonym="log.cleaner.min.cleanable.ratio",
    )
    min_compaction_lag_ms = Option(
        "min.compaction.lag.ms", _LONG, 0, "How long a record is spared by compaction.",
        minimum=0, unit="ms", synonym="log.cleaner.min.compaction.lag.ms",
    )
    min_insync_replicas = Option(
        "min.insync.replicas", _INT, 1,
        "How many replicas must be in sync for acks=all; never more than the replication factor.",
        minimum=1, synonym="min.insync.replicas",
        deviation="Kafka 4.3.1 reports the default as a cluster-wide setting, which its format command makes.",
    )
    preallocate = Option(
        "preallocate", _BOOLEAN, False, "Whether a new segment's file is made in its full size.",
        synonym="log.preallocate",
    )
    record_validation = Option(
        "record.validation", _STRING, "header",
        "How a batch is checked: by its header and checksum, or in full, record by record, as Kafka does.",
        choices=("header", "full"), synonym="record.validation", deviation="Odradek's own.",
    )
    remote_log_copy_disable = Option(
        "remote.log.copy.disable", _BOOLEAN, False, "Whether tiered storage stops taking new segments.",
        refuse=_no_tiered_storage,
    )
    remote_log_delete_on_disable = Option(
        "remote.log.delete.on.disable", _BOOLEAN, False, "Whether switching tiered storage off deletes what it holds.",
        refuse=_no_tiered_storage,
    )
    remote_storage_enable = Option(
        "remote.storage.enable", _BOOLEAN, False, "Whether the topic uses tiered storage.", refuse=_no_tiered_storage,
    )
    retention_bytes = Option(
        "retention.bytes", _LONG, -1, "How large a partition may grow before old segments go; -1 is without limit.",
        minimum=-1, unit="bytes", synonym="log.retention.bytes",
        deviation="Less than -1 is refused; Kafka takes it for -1.",
    )
    retention_ms = Option(
        "retention.ms", _LONG, 7 * _DAY_MS, "How long records stay before old segments go; -1 is for ever.",
        minimum=-1, unit="ms", synonym="log.retention.ms",
    )
    segment_bytes = Option(
        "segment.bytes", _INT, 1024**3, "The size at which a new segment begins.",
        minimum=1024**2, unit="bytes", synonym="log.segment.bytes",
    )
    segment_index_bytes = Option(
        "segment.index.bytes", _INT, 10 * 1024**2, "The size at which an index is full, and a new segment begins.",
        minimum=4, unit="bytes", synonym="log.index.size.max.bytes",
    )
    segment_jitter_ms = Option(
        "segment.jitter.ms", _LONG, 0, "A random part of this is taken off `segment.ms`.",
        minimum=0, unit="ms", synonym="log.roll.jitter.ms",
    )
    segment_ms = Option(
        "segment.ms", _LONG, 7 * _DAY_MS, "The age at which a new segment begins, by the records' timestamps.",
        minimum=1, unit="ms", synonym="log.roll.ms",
    )
    unclean_leader_election_enable = Option(
        "unclean.leader.election.enable", _BOOLEAN, False,
        "Whether a replica outside the in-sync set may lead when none of the set is left, losing records.",
        effect=_STORED, synonym="unclean.leader.election.enable",
    )


class BrokerOptions:
    """What is set for a broker, by file, command line or at run time, in order of the names."""

    advertised_listeners = Option[tuple[str, ...] | None](
        "advertised.listeners", _LIST, None, "The addresses that clients are told; none: those of `listeners`.",
        check=lambda values: check_listeners(values or ()),
    )
    auto_create_topics_enable = Option(
        "auto.create.topics.enable", _BOOLEAN, True, "Whether asking for an unknown topic creates it."
    )
    broker_id = Option("broker.id", _INT, -1, "The older name of `node.id`.")
    broker_rack = Option[str | None](
        "broker.rack", _STRING, None, "Where the broker stands, for placing replicas."
    )
    compression_gzip_level = Option(
        "compression.gzip.level", _INT, -1, "For topics without a level of their own.",
        check=_gzip_level, dynamic=_CLUSTER_WIDE,
    )
    compression_lz4_level = Option(
        "compression.lz4.level", _INT, 9, "For topics without a level of their own.",
        minimum=1, maximum=17, dynamic=_CLUSTER_WIDE,
    )
    compression_type = Option(
        "compression.type", _STRING, "producer", "For topics without a codec of their own.",
        choices=_CODECS, dynamic=_CLUSTER_WIDE,
    )
    compression_zstd_level = Option(
        "compression.zstd.level", _INT, 3, "For topics without a level of their own.",
        minimum=-131072, maximum=22, dynamic=_CLUSTER_WIDE,
    )
    connections_max_idle_ms = Option(
        "connections.max.idle.ms", _LONG, 10 * _MINUTE_MS, "A connection without traffic for this long is closed.",
        unit="ms",
    )
    default_replication_factor = Option(
        "default.replication.factor", _INT, 1, "Of topics that are created without one.",
        minimum=1, maximum=32767, deviation="Kafka takes numbers with which no topic could be created.",
    )
    delete_topic_enable = Option("delete.topic.enable", _BOOLEAN, True, "Whether topics may be deleted.")
    fetch_max_bytes = Option(
        "fetch.max.bytes", _INT, 55 * 1024**2, "The most that one Fetch is answered with.", minimum=1024, unit="bytes"
    )
    listeners = Option[tuple[str, ...]](
        "listeners", _LIST, ("PLAINTEXT://127.0.0.1:9092",), "The addresses to listen on, `NAME://HOST:PORT`.",
        check=check_listeners,
        deviation="Kafka listens on every address unless told otherwise, and can change listeners at run time.",
    )
    log_cleaner_backoff_ms = Option(
        "log.cleaner.backoff.ms", _LONG, 15_000, "How long the cleaner rests when there is nothing to compact.",
        minimum=0, unit="ms", dynamic=_CLUSTER_WIDE,
    )
    log_cleaner_dedupe_buffer_size = Option(
        "log.cleaner.dedupe.buffer.size", _LONG, 128 * 1024**2, "The memory for the keys of what is being compacted.",
        unit="bytes", dynamic=_CLUSTER_WIDE,
    )
    log_cleaner_delete_retention_ms = Option(
        "log.cleaner.delete.retention.ms", _LONG, _DAY_MS, "For topics without `delete.retention.ms`.",
        minimum=0, unit="ms", dynamic=_CLUSTER_WIDE,
    )
    log_cleaner_enable = Option("log.cleaner.enable", _BOOLEAN, True, "Whether logs are compacted at all.")
    log_cleaner_io_buffer_load_factor = Option(
        "log.cleaner.io.buffer.load.factor", _DOUBLE, 0.9, "How full the memory for keys may become.",
        dynamic=_CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_size = Option(
        "log.cleaner.io.buffer.size", _INT, 512 * 1024, "The memory for what compaction reads and writes.",
        minimum=0, unit="bytes", dynamic=_CLUSTER_WIDE,
    )
    log_cleaner_io_max_bytes_per_second = Option(
        "log.cleaner.io.max.bytes.per.second", _DOUBLE, sys.float_info.max,
        "How many bytes compaction may read and write in a second.",
        dynamic=_CLUSTER_WIDE, deviation="Kept on average over a segment's compaction; Kafka's is kept at each moment.",
    )
    log_cleaner_max_compaction_lag_ms = Option(
        "log.cleaner.max.compaction.lag.ms", _LONG, LONG_MAX, "For topics without `max.compaction.lag.ms`.",
        minimum=1, unit="ms", dynamic=_CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio = Option(
        "log.cleaner.min.cleanable.ratio", _DOUBLE, 0.5, "For topics without `min.cleanable.dirty.ratio`.",
        minimum=0, maximum=1, dynamic=_CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms = Option(
        "log.cleaner.min.compaction.lag.ms", _LONG, 0, "For topics without `min.compaction.lag.ms`.",
        minimum=0, unit="ms", dynamic=_CLUSTER_WIDE,
    )
    log_cleaner_threads = Option(
        "log.cleaner.threads", _INT, 1, "How many logs may be compacted at a time.", minimum=0, dynamic=_CLUSTER_WIDE,
        effect=_STORED, deviation="Here it is always one.",
    )
    log_cleanup_policy = Option[tuple[str, ...]](
        "log.cleanup.policy", _LIST, ("delete",), "For topics without `cleanup.policy`.",
        choices=("compact", "delete"), dynamic=_CLUSTER_WIDE,
    )
    log_dir = Option[tuple[str, ...]](
        "log.dir", _LIST, ("./odradek-data",), "The data directory, where `log.dirs` names none.",
        deviation="Kafka's default is /tmp/kafka-logs, which does not survive a reboot everywhere.",
    )
    log_dirs = Option[tuple[str, ...] | None]("log.dirs", _LIST, None, "The data directory (`--data-dir`).")
    log_flush_interval_messages = Option(
        "log.flush.interval.messages", _LONG, LONG_MAX, "For topics without `flush.messages`.",
        minimum=1, dynamic=_CLUSTER_WIDE,
    )
    log_flush_interval_ms = Option[int | None](
        "log.flush.interval.ms", _LONG, None, "For topics without `flush.ms`.",
        minimum=0, unit="ms", dynamic=_CLUSTER_WIDE,
        fallbacks=(Fallback("log.flush.scheduler.interval.ms", 1),),
    )
    log_flush_offset_checkpoint_interval_ms = Option(
        "log.flush.offset.checkpoint.interval.ms", _INT, _MINUTE_MS,
        "How often is written down up to where the logs are synced, from where recovery begins.",
        minimum=0, unit="ms",
    )
    log_flush_scheduler_interval_ms = Option(
        "log.flush.scheduler.interval.ms", _LONG, LONG_MAX, "How often is looked for logs to sync.", unit="ms"
    )
    log_flush_start_offset_checkpoint_interval_ms = Option(
        "log.flush.start.offset.checkpoint.interval.ms", _INT, _MINUTE_MS, "How often the log starts are written down.",
        minimum=0, unit="ms",
    )
    log_index_interval_bytes = Option(
        "log.index.interval.bytes", _INT, 4096, "For topics without `index.interval.bytes`.",
        minimum=0, unit="bytes", dynamic=_CLUSTER_WIDE,
    )
    log_index_size_max_bytes = Option(
        "log.index.size.max.bytes", _INT, 10 * 1024**2, "For topics without `segment.index.bytes`.",
        minimum=4, unit="bytes", dynamic=_CLUSTER_WIDE,
    )
    log_initial_task_delay_ms = Option(
        "log.initial.task.delay.ms", _LONG, 30_000, "How long after the start work in the background begins.",
        minimum=0, unit="ms", deviation=_INTERNAL,
    )
    log_local_retention_bytes = Option(
        "log.local.retention.bytes", _LONG, -2, "For topics without `local.retention.bytes`.",
        minimum=-2, unit="bytes", dynamic=_CLUSTER_WIDE, effect=_STORED,
    )
    log_local_retention_ms = Option(
        "log.local.retention.ms", _LONG, -2, "For topics without `local.retention.ms`.",
        minimum=-2, unit="ms", dynamic=_CLUSTER_WIDE, effect=_STORED,
    )
    log_message_timestamp_after_max_ms = Option(
        "log.message.timestamp.after.max.ms", _LONG, _HOUR_MS, "For topics without `message.timestamp.after.max.ms`.",
        minimum=0, unit="ms", dynamic=_CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms = Option(
        "log.message.timestamp.before.max.ms", _LONG, LONG_MAX,
        "For topics without `message.timestamp.before.max.ms`.",
        minimum=0, unit="ms", dynamic=_CLUSTER_WIDE,
    )
    log_message_timestamp_type = Option(
        "log.message.timestamp.type", _STRING, "CreateTime", "For topics without `message.timestamp.type`.",
        choices=("CreateTime", "LogAppendTime"), dynamic=_CLUSTER_WIDE,
    )
    log_preallocate = Option(
        "log.preallocate", _BOOLEAN, False, "For topics without `preallocate`.", dynamic=_CLUSTER_WIDE
    )
    log_retention_bytes = Option(
        "log.retention.bytes", _LONG, -1, "For topics without `retention.bytes`.",
        minimum=-1, unit="bytes", dynamic=_CLUSTER_WIDE,
    )
    log_retention_check_interval_ms = Option(
        "log.retention.check.interval.ms", _LONG, 5 * _MINUTE_MS, "How often is looked for segments to delete.",
        minimum=1, unit="ms",
    )
    log_retention_hours = Option(
        "log.retention.hours", _INT, 168, "Counts where neither `log.retention.ms` nor `.minutes` is set.",
        minimum=-1, unit="hours",
    )
    log_retention_minutes = Option[int | None](
        "log.retention.minutes", _INT, None, "Counts where `log.retention.ms` is not set.",
        minimum=-1, unit="minutes",
    )
    log_retention_ms = Option[int | None](
        "log.retention.ms", _LONG, None, "For topics without `retention.ms`.",
        minimum=-1, unit="ms", dynamic=_CLUSTER_WIDE,
        fallbacks=(Fallback("log.retention.minutes", _MINUTE_MS), Fallback("log.retention.hours", _HOUR_MS)),
        deviation="Less than -1 is refused; Kafka takes it for -1.",
    )
    log_roll_hours = Option(
        "log.roll.hours", _INT, 168, "Counts where `log.roll.ms` is not set.", minimum=1, unit="hours"
    )
    log_roll_jitter_hours = Option(
        "log.roll.jitter.hours", _INT, 0, "Counts where `log.roll.jitter.ms` is not set.", minimum=0, unit="hours"
    )
    log_roll_jitter_ms = Option[int | None](
        "log.roll.jitter.ms", _LONG, None, "For topics without `segment.jitter.ms`.",
        minimum=0, unit="ms", dynamic=_CLUSTER_WIDE,
        fallbacks=(Fallback("log.roll.jitter.hours", _HOUR_MS),),
    )
    log_roll_ms = Option[int | None](
        "log.roll.ms", _LONG, None, "For topics without `segment.ms`.",
        minimum=1, unit="ms", dynamic=_CLUSTER_WIDE, fallbacks=(Fallback("log.roll.hours", _HOUR_MS),),
    )
    log_segment_bytes = Option(
        "log.segment.bytes", _INT, 1024**3, "For topics without `segment.bytes`.",
        minimum=1024**2, unit="bytes", dynamic=_CLUSTER_WIDE,
    )
    log_segment_delete_delay_ms = Option(
        "log.segment.delete.delay.ms", _LONG, _MINUTE_MS, "For topics without `file.delete.delay.ms`.",
        minimum=0, unit="ms", dynamic=_CLUSTER_WIDE,
    )
    max_connections = Option(
        "max.connections", _INT, INT_MAX, "How many connections may be open at a time.",
        minimum=0, dynamic=_CLUSTER_WIDE,
    )
    max_incremental_fetch_session_cache_slots = Option(
        "max.incremental.fetch.session.cache.slots", _INT, 1000, "How many incremental fetch sessions are kept.",
        minimum=0,
    )
    max_request_partition_size_limit = Option(
        "max.request.partition.size.limit", _INT, 2000, "Partitions in one answer to DescribeTopicPartitions.",
        minimum=1,
    )
    message_max_bytes = Option(
        "message.max.bytes", _INT, 1048588, "For topics without `max.message.bytes`.",
        minimum=0, unit="bytes", dynamic=_CLUSTER_WIDE,
    )
    min_insync_replicas = Option(
        "min.insync.replicas", _INT, 1, "For topics without a number of their own.", minimum=1, dynamic=_CLUSTER_WIDE,
        deviation="Kafka 4.3.1's format command sets it for all brokers, so that Kafka reports it as set.",
    )
    node_id = Option(
        "node.id", _INT, 0, "The id of this broker in its cluster.",
        minimum=0, deviation="Kafka has no default.",
    )
    num_partitions = Option(
        "num.partitions", _INT, 1, "Of topics that are created without a number.", minimum=1
    )
    producer_id_expiration_check_interval_ms = Option(
        "producer.id.expiration.check.interval.ms", _INT, 10 * _MINUTE_MS, "How often is looked for idle producers.",
        minimum=1, unit="ms", deviation=_INTERNAL,
    )
    producer_id_expiration_ms = Option(
        "producer.id.expiration.ms", _INT, _DAY_MS, "How long an idle idempotent producer is remembered.",
        minimum=1, unit="ms", dynamic=_CLUSTER_WIDE,
    )
    queued_max_request_bytes = Option(
        "queued.max.request.bytes", _LONG, 256 * 1024**2,
        "Requests received and not yet answered; over it reading pauses. -1 is without limit.",
        minimum=-1, unit="bytes",
        deviation="Kafka has no limit unless told so, and may run out of memory.",
    )
    record_validation = Option(
        "record.validation", _STRING, "header", "For topics without `record.validation`.",
        choices=("header", "full"), dynamic=_CLUSTER_WIDE, deviation="Odradek's own.",
    )
    replica_high_watermark_checkpoint_interval_ms = Option(
        "replica.high.watermark.checkpoint.interval.ms", _LONG, 5_000,
        "How often the high watermarks are written down.", unit="ms",
    )
    replica_lag_time_max_ms = Option(
        "replica.lag.time.max.ms", _LONG, 30_000, "A follower that has not caught up for this long is out of sync.",
        minimum=1, unit="ms",
    )
    socket_request_max_bytes = Option(
        "socket.request.max.bytes", _INT, 100 * 1024**2, "The largest request; a larger one ends the connection.",
        minimum=1, unit="bytes",
    )
    unclean_leader_election_enable = Option(
        "unclean.leader.election.enable", _BOOLEAN, False, "For topics without a value of their own.",
        dynamic=_CLUSTER_WIDE, effect=_STORED,
    )
# fmt: on


def _rows(owner: type) -> dict[str, Option[Any]]:
    return {row.name: row for row in vars(owner).values() if isinstance(row, Option)}


TOPIC_OPTIONS: dict[str, Option[Any]] = _rows(TopicOptions)
BROKER_OPTIONS: dict[str, Option[Any]] = _rows(BrokerOptions)
