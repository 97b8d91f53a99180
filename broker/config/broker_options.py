"""Every option, one row each: Kafka's names, types, bounds and the defaults of Kafka 4.3.1 (tests compare them).

`TopicOptions` are what Kafka reports for a topic; each names the broker option that counts where the topic has no value
of its own. `BrokerOptions` are those that this broker has an effect for, or that topics inherit. A value whose effect
is not built yet is refused, where storing it would promise something: `refuse` says why. Where it would merely be
without effect it is stored and reported: `Effect.STORED`. A difference from Kafka stands in `deviation`.

docs/configuration.md is made from these rows (pages/configuration_page.py).
"""

import sys
from typing import Any

from odradek.broker.config.access_options import AccessOptions
from odradek.broker.config.group_options import GroupOptions
from odradek.broker.config.listeners import check_listeners
from odradek.broker.config.option import (
    BOOLEAN,
    CLUSTER_WIDE,
    CODECS,
    DAY_MS,
    DOUBLE,
    HOUR_MS,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    MINUTE_MS,
    OURS,
    PASSWORD,
    STORED,
    STRING,
    Dynamic,
    Fallback,
    Option,
    gzip_level,
    rows,
)
from odradek.broker.config.quota_options import QuotaOptions
from odradek.broker.config.sasl_options import SaslOptions
from odradek.broker.config.secure_options import SecureOptions
from odradek.broker.config.security_protocol import PROTOCOL_MAP_DEFAULT, check_protocol_map
from odradek.broker.config.store_address import check_store_address
from odradek.broker.config.tls_options import TlsOptions
from odradek.broker.config.transaction_options import TransactionOptions

_INTERNAL = "Kafka takes it, too, but does not describe it."


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class BrokerOptions(
    AccessOptions, GroupOptions, QuotaOptions, SaslOptions, SecureOptions, TlsOptions, TransactionOptions
):
    """What is set for a broker, by file, command line or at run time, in order of the names."""

    act_as = Option[str | None](
        "act.as", STRING, None,
        "The release of Apache Kafka as which the broker presents itself to clients: they are told its versions of "
        "each API, and no newer feature; none: all that this broker can.",
        choices=("3.9", "4.0", "4.1", "4.2", "4.3"), deviation=OURS,
    )
    advertised_listeners = Option[tuple[str, ...] | None](
        "advertised.listeners", LIST, None, "The addresses that clients are told; none: those of `listeners`.",
        check=lambda values: check_listeners(values or ()),
    )
    auto_create_topics_enable = Option(
        "auto.create.topics.enable", BOOLEAN, True, "Whether asking for an unknown topic creates it."
    )
    auto_leader_rebalance_enable = Option(
        "auto.leader.rebalance.enable", BOOLEAN, True, "Whether preferred leaders get leadership back by themselves."
    )
    broker_heartbeat_interval_ms = Option(
        "broker.heartbeat.interval.ms", INT, 200, "How often a broker tells the controller that it is there.",
        minimum=1, unit="ms", deviation="Kafka's default is 2000.",
    )
    broker_id = Option("broker.id", INT, -1, "The older name of `node.id`.")
    broker_rack = Option[str | None](
        "broker.rack", STRING, None, "Where the broker stands, for placing replicas."
    )
    broker_session_timeout_ms = Option(
        "broker.session.timeout.ms", INT, 1500, "A broker that is silent for so long is fenced by the controller.",
        minimum=1, unit="ms", deviation="Kafka's default is 9000.",
    )
    compression_gzip_level = Option(
        "compression.gzip.level", INT, -1, "For topics without a level of their own.",
        check=gzip_level, dynamic=CLUSTER_WIDE,
    )
    compression_lz4_level = Option(
        "compression.lz4.level", INT, 9, "For topics without a level of their own.",
        minimum=1, maximum=17, dynamic=CLUSTER_WIDE,
    )
    compression_type = Option(
        "compression.type", STRING, "producer", "For topics without a codec of their own.",
        choices=CODECS, dynamic=CLUSTER_WIDE,
    )
    compression_zstd_level = Option(
        "compression.zstd.level", INT, 3, "For topics without a level of their own.",
        minimum=-131072, maximum=22, dynamic=CLUSTER_WIDE,
    )
    connections_max_idle_ms = Option(
        "connections.max.idle.ms", LONG, 10 * MINUTE_MS, "A connection without traffic for this long is closed.",
        unit="ms",
    )
    default_replication_factor = Option(
        "default.replication.factor", INT, 1, "Of topics that are created without one.",
        minimum=1, maximum=32767, deviation="Kafka takes numbers with which no topic could be created.",
    )
    delete_topic_enable = Option("delete.topic.enable", BOOLEAN, True, "Whether topics may be deleted.")
    fetch_max_bytes = Option(
        "fetch.max.bytes", INT, 55 * 1024**2, "The most that one Fetch is answered with.", minimum=1024, unit="bytes"
    )
    follower_replication_throttled_rate = Option(
        "follower.replication.throttled.rate", LONG, LONG_MAX, "Bytes in a second that throttled replicas may fetch.",
        minimum=0, unit="bytes", dynamic=CLUSTER_WIDE, deviation=_INTERNAL,
    )
    initial_broker_registration_timeout_ms = Option(
        "initial.broker.registration.timeout.ms", INT, MINUTE_MS, "How long a start waits for a shared metadata store.",
        unit="ms",
    )
    inter_broker_listener_name = Option[str | None](
        "inter.broker.listener.name", STRING, None,
        "The listener that brokers use among themselves; none: the one of `security.inter.broker.protocol`, if that is "
        "set, else the first of `listeners`.",
        deviation="Kafka takes the one of `security.inter.broker.protocol`, set or not.",
    )
    leader_imbalance_check_interval_seconds = Option(
        "leader.imbalance.check.interval.seconds", LONG, 300, "How often is looked for preferred leaders.",
        minimum=1, unit="seconds",
    )
    leader_replication_throttled_rate = Option(
        "leader.replication.throttled.rate", LONG, LONG_MAX, "Bytes in a second that throttled replicas may be sent.",
        minimum=0, unit="bytes", dynamic=CLUSTER_WIDE, deviation=_INTERNAL,
    )
    listener_security_protocol_map = Option(
        "listener.security.protocol.map", STRING, PROTOCOL_MAP_DEFAULT,
        "The security protocol of each listener, `NAME:PROTOCOL`; SASL_PLAINTEXT is not built, and a start with a "
        "listener that is to speak it is refused.",
        check=check_protocol_map,
        deviation="A listener that is not named here speaks PLAINTEXT unless its name is a protocol's; Kafka refuses "
        "the start. A name that stands twice is refused; in Kafka its last protocol counts, and the option can be "
        "changed at run time.",
    )
    listeners = Option[tuple[str, ...]](
        "listeners", LIST, ("PLAINTEXT://127.0.0.1:9092",), "The addresses to listen on, `NAME://HOST:PORT`.",
        check=check_listeners,
        deviation="Kafka listens on every address unless told otherwise, and can change listeners at run time.",
    )
    log_cleaner_backoff_ms = Option(
        "log.cleaner.backoff.ms", LONG, 15_000, "How long the cleaner rests when there is nothing to compact.",
        minimum=0, unit="ms", dynamic=CLUSTER_WIDE,
    )
    log_cleaner_dedupe_buffer_size = Option(
        "log.cleaner.dedupe.buffer.size", LONG, 128 * 1024**2, "The memory for the keys of what is being compacted.",
        unit="bytes", dynamic=CLUSTER_WIDE,
    )
    log_cleaner_delete_retention_ms = Option(
        "log.cleaner.delete.retention.ms", LONG, DAY_MS, "For topics without `delete.retention.ms`.",
        minimum=0, unit="ms", dynamic=CLUSTER_WIDE,
    )
    log_cleaner_enable = Option("log.cleaner.enable", BOOLEAN, True, "Whether logs are compacted at all.")
    log_cleaner_io_buffer_load_factor = Option(
        "log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, "How full the memory for keys may become.",
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_size = Option(
        "log.cleaner.io.buffer.size", INT, 512 * 1024, "The memory for what compaction reads and writes.",
        minimum=0, unit="bytes", dynamic=CLUSTER_WIDE,
    )
    log_cleaner_io_max_bytes_per_second = Option(
        "log.cleaner.io.max.bytes.per.second", DOUBLE, sys.float_info.max,
        "How many bytes compaction may read and write in a second.",
        dynamic=CLUSTER_WIDE,
        deviation="Kept from batch to batch within a segment's compaction; Kafka's is kept at each moment.",
    )
    log_cleaner_max_compaction_lag_ms = Option(
        "log.cleaner.max.compaction.lag.ms", LONG, LONG_MAX, "For topics without `max.compaction.lag.ms`.",
        minimum=1, unit="ms", dynamic=CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio = Option(
        "log.cleaner.min.cleanable.ratio", DOUBLE, 0.5, "For topics without `min.cleanable.dirty.ratio`.",
        minimum=0, maximum=1, dynamic=CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms = Option(
        "log.cleaner.min.compaction.lag.ms", LONG, 0, "For topics without `min.compaction.lag.ms`.",
        minimum=0, unit="ms", dynamic=CLUSTER_WIDE,
    )
    log_cleaner_threads = Option(
        "log.cleaner.threads", INT, 1, "How many logs may be compacted at a time.", minimum=0, dynamic=CLUSTER_WIDE,
        effect=STORED, deviation="Here it is always one.",
    )
    log_cleanup_policy = Option[tuple[str, ...]](
        "log.cleanup.policy", LIST, ("delete",), "For topics without `cleanup.policy`.",
        choices=("compact", "delete"), dynamic=CLUSTER_WIDE,
    )
    log_dir = Option[tuple[str, ...]](
        "log.dir", LIST, ("./odradek-data",), "The data directories, where `log.dirs` names none.",
        deviation="Kafka's default is /tmp/kafka-logs, which does not survive a reboot everywhere.",
    )
    log_dirs = Option[tuple[str, ...] | None]("log.dirs", LIST, None, "The data directories (`--data-dir`).")
    log_flush_interval_messages = Option(
        "log.flush.interval.messages", LONG, LONG_MAX, "For topics without `flush.messages`.",
        minimum=1, dynamic=CLUSTER_WIDE,
    )
    log_flush_interval_ms = Option[int | None](
        "log.flush.interval.ms", LONG, None, "For topics without `flush.ms`.",
        minimum=0, unit="ms", dynamic=CLUSTER_WIDE,
        fallbacks=(Fallback("log.flush.scheduler.interval.ms", 1),),
    )
    log_flush_offset_checkpoint_interval_ms = Option(
        "log.flush.offset.checkpoint.interval.ms", INT, MINUTE_MS,
        "How often is written down up to where the logs are synced, from where recovery begins.",
        minimum=0, unit="ms",
    )
    log_flush_scheduler_interval_ms = Option(
        "log.flush.scheduler.interval.ms", LONG, LONG_MAX, "How often is looked for logs to sync.", unit="ms"
    )
    log_flush_start_offset_checkpoint_interval_ms = Option(
        "log.flush.start.offset.checkpoint.interval.ms", INT, MINUTE_MS, "How often the log starts are written down.",
        minimum=0, unit="ms",
    )
    log_index_interval_bytes = Option(
        "log.index.interval.bytes", INT, 4096, "For topics without `index.interval.bytes`.",
        minimum=0, unit="bytes", dynamic=CLUSTER_WIDE,
    )
    log_index_size_max_bytes = Option(
        "log.index.size.max.bytes", INT, 10 * 1024**2, "For topics without `segment.index.bytes`.",
        minimum=4, unit="bytes", dynamic=CLUSTER_WIDE,
    )
    log_initial_task_delay_ms = Option(
        "log.initial.task.delay.ms", LONG, 30_000, "How long after the start retention and recovery points begin.",
        minimum=0, unit="ms", deviation=_INTERNAL,
    )
    log_local_retention_bytes = Option(
        "log.local.retention.bytes", LONG, -2, "For topics without `local.retention.bytes`.",
        minimum=-2, unit="bytes", dynamic=CLUSTER_WIDE, effect=STORED,
    )
    log_local_retention_ms = Option(
        "log.local.retention.ms", LONG, -2, "For topics without `local.retention.ms`.",
        minimum=-2, unit="ms", dynamic=CLUSTER_WIDE, effect=STORED,
    )
    log_message_timestamp_after_max_ms = Option(
        "log.message.timestamp.after.max.ms", LONG, HOUR_MS, "For topics without `message.timestamp.after.max.ms`.",
        minimum=0, unit="ms", dynamic=CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms = Option(
        "log.message.timestamp.before.max.ms", LONG, LONG_MAX,
        "For topics without `message.timestamp.before.max.ms`.",
        minimum=0, unit="ms", dynamic=CLUSTER_WIDE,
    )
    log_message_timestamp_type = Option(
        "log.message.timestamp.type", STRING, "CreateTime", "For topics without `message.timestamp.type`.",
        choices=("CreateTime", "LogAppendTime"), dynamic=CLUSTER_WIDE,
    )
    log_preallocate = Option(
        "log.preallocate", BOOLEAN, False, "For topics without `preallocate`.", dynamic=CLUSTER_WIDE
    )
    log_retention_bytes = Option(
        "log.retention.bytes", LONG, -1, "For topics without `retention.bytes`.",
        minimum=-1, unit="bytes", dynamic=CLUSTER_WIDE,
    )
    log_retention_check_interval_ms = Option(
        "log.retention.check.interval.ms", LONG, 5 * MINUTE_MS, "How often is looked for segments to delete.",
        minimum=1, unit="ms",
    )
    log_retention_hours = Option(
        "log.retention.hours", INT, 168, "Counts where neither `log.retention.ms` nor `.minutes` is set.",
        minimum=-1, unit="hours",
    )
    log_retention_minutes = Option[int | None](
        "log.retention.minutes", INT, None, "Counts where `log.retention.ms` is not set.",
        minimum=-1, unit="minutes",
    )
    log_retention_ms = Option[int | None](
        "log.retention.ms", LONG, None, "For topics without `retention.ms`.",
        minimum=-1, unit="ms", dynamic=CLUSTER_WIDE,
        fallbacks=(Fallback("log.retention.minutes", MINUTE_MS), Fallback("log.retention.hours", HOUR_MS)),
        deviation="Less than -1 is refused; Kafka takes it for -1.",
    )
    log_roll_hours = Option(
        "log.roll.hours", INT, 168, "Counts where `log.roll.ms` is not set.", minimum=1, unit="hours"
    )
    log_roll_jitter_hours = Option(
        "log.roll.jitter.hours", INT, 0, "Counts where `log.roll.jitter.ms` is not set.", minimum=0, unit="hours"
    )
    log_roll_jitter_ms = Option[int | None](
        "log.roll.jitter.ms", LONG, None, "For topics without `segment.jitter.ms`.",
        minimum=0, unit="ms", dynamic=CLUSTER_WIDE,
        fallbacks=(Fallback("log.roll.jitter.hours", HOUR_MS),),
    )
    log_roll_ms = Option[int | None](
        "log.roll.ms", LONG, None, "For topics without `segment.ms`.",
        minimum=1, unit="ms", dynamic=CLUSTER_WIDE, fallbacks=(Fallback("log.roll.hours", HOUR_MS),),
    )
    log_segment_bytes = Option(
        "log.segment.bytes", INT, 1024**3, "For topics without `segment.bytes`.",
        minimum=1024**2, unit="bytes", dynamic=CLUSTER_WIDE,
    )
    log_segment_delete_delay_ms = Option(
        "log.segment.delete.delay.ms", LONG, MINUTE_MS, "For topics without `file.delete.delay.ms`.",
        minimum=0, unit="ms", dynamic=CLUSTER_WIDE,
    )
    max_connections = Option(
        "max.connections", INT, INT_MAX, "How many connections may be open at a time.",
        minimum=0, dynamic=CLUSTER_WIDE,
        per_listener=True,
    )
    max_incremental_fetch_session_cache_slots = Option(
        "max.incremental.fetch.session.cache.slots", INT, 1000, "How many incremental fetch sessions are kept.",
        minimum=0,
    )
    max_request_partition_size_limit = Option(
        "max.request.partition.size.limit", INT, 2000, "Partitions in one answer to DescribeTopicPartitions.",
        minimum=1,
    )
    message_max_bytes = Option(
        "message.max.bytes", INT, 1048588, "For topics without `max.message.bytes`.",
        minimum=0, unit="bytes", dynamic=CLUSTER_WIDE,
    )
    metadata_etcd_ca_location = Option[str | None](
        "metadata.etcd.ca.location", STRING, None,
        "The certificates (PEM) of who signed those of etcd's members; none: etcd is spoken to without TLS.",
        deviation=OURS,
    )
    metadata_etcd_certificate_location = Option[str | None](
        "metadata.etcd.certificate.location", STRING, None,
        "The broker's own certificate (PEM), where etcd asks for one.", deviation=OURS,
    )
    metadata_etcd_key_location = Option[str | None](
        "metadata.etcd.key.location", STRING, None, "The key of that certificate (PEM, not encrypted).",
        deviation=OURS,
    )
    metadata_etcd_password = Option[str | None](
        "metadata.etcd.password", PASSWORD, None, "Of the user of etcd.", deviation=OURS
    )
    metadata_etcd_username = Option[str | None](
        "metadata.etcd.username", STRING, None, "The user of etcd; none where etcd asks for none.", deviation=OURS
    )
    metadata_lease_ms = Option(
        "metadata.lease.ms", INT, 2000,
        "How long a broker may be silent towards a shared store before others take its place; etcd grants whole "
        "seconds.",
        minimum=1000, unit="ms", deviation=OURS,
    )
    metadata_request_timeout_ms = Option(
        "metadata.request.timeout.ms", INT, 2000, "How long a shared store may take to answer.",
        minimum=100, unit="ms", deviation=OURS,
    )
    metadata_store = Option(
        "metadata.store", STRING, "embedded:",
        "Where the metadata lives: `embedded:`, `memory:`, `unix:PATH`, or `etcd://HOST:PORT,HOST:PORT/prefix`.",
        check=check_store_address, deviation=OURS,
    )
    metrics_group_lag_max_series = Option(
        "metrics.group.lag.max.series", INT, 0,
        "How many series `odradek_group_lag` may have on the metrics page of a broker; 0: it is not there.",
        minimum=0, maximum=2000, dynamic=CLUSTER_WIDE, deviation=OURS,
    )
    min_insync_replicas = Option(
        "min.insync.replicas", INT, 1, "For topics without a number of their own.", minimum=1,
        dynamic=Dynamic.ALL_BROKERS,
        deviation="Kafka 4.3.1's format command sets it for all brokers, so that Kafka reports it as set.",
    )
    node_id = Option(
        "node.id", INT, 0, "The id of this broker in its cluster.",
        minimum=0, deviation="Kafka has no default.",
    )
    num_partitions = Option(
        "num.partitions", INT, 1, "Of topics that are created without a number.", minimum=1
    )
    producer_id_expiration_check_interval_ms = Option(
        "producer.id.expiration.check.interval.ms", INT, 10 * MINUTE_MS, "How often is looked for idle producers.",
        minimum=1, unit="ms", deviation=_INTERNAL,
    )
    producer_id_expiration_ms = Option(
        "producer.id.expiration.ms", INT, DAY_MS, "How long an idle idempotent producer is remembered.",
        minimum=1, unit="ms", dynamic=CLUSTER_WIDE,
    )
    queued_max_request_bytes = Option(
        "queued.max.request.bytes", LONG, 256 * 1024**2,
        "Requests received and not yet answered; over it reading pauses. -1 is without limit.",
        minimum=-1, unit="bytes",
        deviation="Kafka has no limit unless told so, and may run out of memory.",
    )
    record_validation = Option(
        "record.validation", STRING, "header", "For topics without `record.validation`.",
        choices=("header", "full"), dynamic=CLUSTER_WIDE, deviation=OURS,
    )
    replica_fetch_backoff_ms = Option(
        "replica.fetch.backoff.ms", INT, 1000, "How long a follower waits at most after an error.",
        minimum=0, unit="ms", deviation="Kafka always waits for so long.",
    )
    replica_fetch_max_bytes = Option(
        "replica.fetch.max.bytes", INT, 1024**2, "The most of one partition in an answer to a follower.",
        minimum=0, unit="bytes",
    )
    replica_fetch_min_bytes = Option(
        "replica.fetch.min.bytes", INT, 1, "A leader waits for so much before it answers a follower.", unit="bytes"
    )
    replica_fetch_response_max_bytes = Option(
        "replica.fetch.response.max.bytes", INT, 10 * 1024**2, "The most in an answer to a follower.",
        minimum=0, unit="bytes",
    )
    replica_fetch_wait_max_ms = Option(
        "replica.fetch.wait.max.ms", INT, 500, "How long a leader may wait before it answers a follower.", unit="ms"
    )
    replica_high_watermark_checkpoint_interval_ms = Option(
        "replica.high.watermark.checkpoint.interval.ms", LONG, 5_000,
        "How often the high watermarks are written down.", unit="ms",
    )
    replica_lag_time_max_ms = Option(
        "replica.lag.time.max.ms", LONG, 30_000, "A follower that has not caught up for this long is out of sync.",
        minimum=1, unit="ms",
    )
    replica_selector_class = Option[str | None](
        "replica.selector.class", STRING, None,
        "Where consumers read that say their rack: from the leader, or with "
        "`org.apache.kafka.common.replica.RackAwareReplicaSelector` from an in-sync follower in their rack.",
        choices=("org.apache.kafka.common.replica.RackAwareReplicaSelector",),
    )
    replica_socket_timeout_ms = Option(
        "replica.socket.timeout.ms", INT, 30_000, "How long a follower waits for an answer of its leader.", unit="ms"
    )
    request_log_slower_than_ms = Option(
        "request.log.slower.than.ms", INT, 0,
        "The request log (logger `kafka.request.logger`, from DEBUG on) tells of requests that take so long or longer.",
        minimum=0, unit="ms", dynamic=CLUSTER_WIDE, deviation=OURS,
    )
    socket_connection_setup_timeout_ms = Option(
        "socket.connection.setup.timeout.ms", LONG, 10_000,
        "How long a follower tries to connect to its leader before it begins anew.", minimum=1, unit="ms",
        deviation="Each attempt has this long. Kafka's later ones have longer, up to "
        "`socket.connection.setup.timeout.max.ms`.",
    )
    socket_request_max_bytes = Option(
        "socket.request.max.bytes", INT, 100 * 1024**2, "The largest request; a larger one ends the connection.",
        minimum=1, unit="bytes",
    )
    unclean_leader_election_enable = Option(
        "unclean.leader.election.enable", BOOLEAN, False, "For topics without a value of their own.",
        dynamic=CLUSTER_WIDE,
    )
# fmt: on


BROKER_OPTIONS: dict[str, Option[Any]] = rows(BrokerOptions)
