"""What is set for a broker's coordinators of groups, one row each (broker_options.py, where the rules of these rows
stand)."""

from odradek.broker.config.option import (
    CLUSTER_WIDE,
    INT,
    INT_MAX,
    LIST,
    LONG,
    MINUTE_MS,
    SHORT,
    STRING,
    Option,
)


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class GroupOptions:
    """In order of the names."""

    group_consumer_assignment_interval_ms = Option(
        "group.consumer.assignment.interval.ms", INT, 1000,
        "How long after an assignment of a consumer group the next one may be worked out.", minimum=0, unit="ms",
        dynamic=CLUSTER_WIDE,
    )
    group_consumer_assignors = Option[tuple[str, ...]](
        "group.consumer.assignors", LIST, ("uniform", "range"),
        "The assignors that members of consumer groups may ask for; the first is the default.",
        choices=("uniform", "range"), deviation="Kafka takes names of Java classes, too.",
    )
    group_consumer_heartbeat_interval_ms = Option(
        "group.consumer.heartbeat.interval.ms", INT, 5000, "How often members of consumer groups are to say that they "
        "are there.", minimum=1, unit="ms",
    )
    group_consumer_max_assignment_interval_ms = Option(
        "group.consumer.max.assignment.interval.ms", INT, 15_000,
        "The most that a group's `consumer.assignment.interval.ms` may be.", minimum=0, unit="ms",
    )
    group_consumer_max_heartbeat_interval_ms = Option(
        "group.consumer.max.heartbeat.interval.ms", INT, 15_000,
        "The most that a group's `consumer.heartbeat.interval.ms` may be.", minimum=1, unit="ms",
    )
    group_consumer_max_session_timeout_ms = Option(
        "group.consumer.max.session.timeout.ms", INT, MINUTE_MS,
        "The most that a group's `consumer.session.timeout.ms` may be.", minimum=1, unit="ms",
    )
    group_consumer_max_size = Option(
        "group.consumer.max.size", INT, INT_MAX, "How many members a consumer group may have.", minimum=1,
    )
    group_consumer_migration_policy = Option(
        "group.consumer.migration.policy", STRING, "bidirectional",
        "Whether a classic group may become a consumer group while it has members, and the other way.",
        choices=("disabled", "downgrade", "upgrade", "bidirectional"),
    )
    group_consumer_min_assignment_interval_ms = Option(
        "group.consumer.min.assignment.interval.ms", INT, 0,
        "The least that a group's `consumer.assignment.interval.ms` may be.", minimum=0, unit="ms",
    )
    group_consumer_min_heartbeat_interval_ms = Option(
        "group.consumer.min.heartbeat.interval.ms", INT, 5000,
        "The least that a group's `consumer.heartbeat.interval.ms` may be.", minimum=1, unit="ms",
    )
    group_consumer_min_session_timeout_ms = Option(
        "group.consumer.min.session.timeout.ms", INT, 45_000,
        "The least that a group's `consumer.session.timeout.ms` may be.", minimum=1, unit="ms",
    )
    group_consumer_session_timeout_ms = Option(
        "group.consumer.session.timeout.ms", INT, 45_000,
        "How long a member of a consumer group may be silent before it is removed.", minimum=1, unit="ms",
    )
    group_coordinator_append_linger_ms = Option(
        "group.coordinator.append.linger.ms", INT, -1,
        "How long a coordinator waits for more to write before it appends; -1: as long as requests arrive together.",
        minimum=-1, unit="ms",
    )
    group_initial_rebalance_delay_ms = Option(
        "group.initial.rebalance.delay.ms", INT, 3000,
        "How long a new classic group waits for more members before its first rebalance.", unit="ms",
        deviation="0 with `--memory`: tests do not wait.",
    )
    group_max_session_timeout_ms = Option(
        "group.max.session.timeout.ms", INT, 30 * MINUTE_MS, "The longest session that a classic member may ask for.",
        unit="ms",
    )
    group_max_size = Option("group.max.size", INT, INT_MAX, "How many members a classic group may have.", minimum=1)
    group_min_session_timeout_ms = Option(
        "group.min.session.timeout.ms", INT, 6000, "The shortest session that a classic member may ask for.", unit="ms",
    )
    offset_metadata_max_bytes = Option(
        "offset.metadata.max.bytes", INT, 4096, "How long the text may be that is committed with an offset.",
        unit="characters",
    )
    offsets_commit_timeout_ms = Option(
        "offsets.commit.timeout.ms", INT, 5000, "How long what a coordinator wrote may take until it is on all in-sync "
        "replicas, before who waits is told COORDINATOR_NOT_AVAILABLE.", minimum=1, unit="ms",
    )
    offsets_retention_check_interval_ms = Option(
        "offsets.retention.check.interval.ms", LONG, 10 * MINUTE_MS, "How often expired offsets are looked for.",
        minimum=1, unit="ms",
    )
    offsets_retention_minutes = Option(
        "offsets.retention.minutes", INT, 7 * 24 * 60,
        "How long the offsets of a group without members are kept, and those of a topic that it reads no longer.",
        minimum=1, unit="minutes",
    )
    offsets_topic_compression_codec = Option(
        "offsets.topic.compression.codec", INT, 0, "The codec of what coordinators of groups write: 0 none, 1 gzip, "
        "2 snappy, 3 lz4, 4 zstd.", minimum=0, maximum=4,
    )
    offsets_topic_num_partitions = Option(
        "offsets.topic.num.partitions", INT, 50, "How many partitions `__consumer_offsets` is created with.", minimum=1,
    )
    offsets_topic_replication_factor = Option(
        "offsets.topic.replication.factor", SHORT, 3, "How many replicas `__consumer_offsets` is to have.", minimum=1,
        deviation="With fewer brokers it is created with as many replicas as there are brokers, and gets more when "
        "there are more; Kafka creates it when there are enough.",
    )
    offsets_topic_segment_bytes = Option(
        "offsets.topic.segment.bytes", INT, 100 * 1024**2, "`segment.bytes` of `__consumer_offsets`.", minimum=1,
        unit="bytes",
    )
# fmt: on
