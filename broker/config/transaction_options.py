"""What is set for a broker's coordinators of transactions, one row each (broker_options.py, where the rules of these
rows stand)."""

from odradek.broker.config.option import BOOLEAN, CLUSTER_WIDE, DAY_MS, HOUR_MS, INT, MINUTE_MS, SHORT, Option


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class TransactionOptions:
    """In order of the names."""

    transaction_max_timeout_ms = Option(
        "transaction.max.timeout.ms", INT, 15 * MINUTE_MS, "The longest time-out that a producer may ask for; a "
        "transaction that is open for longer than its own is aborted.", minimum=1, unit="ms",
    )
    transaction_partition_verification_enable = Option(
        "transaction.partition.verification.enable", BOOLEAN, True, "Whether the first batch of a transaction is "
        "appended only if its coordinator knows of it (KIP-890).", dynamic=CLUSTER_WIDE,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = Option(
        "transaction.remove.expired.transaction.cleanup.interval.ms", INT, HOUR_MS,
        "How often expired transactional ids are looked for.", minimum=1, unit="ms",
    )
    transaction_state_log_min_isr = Option(
        "transaction.state.log.min.isr", INT, 2, "`min.insync.replicas` of `__transaction_state`, from three replicas "
        "on.", minimum=1, deviation="With fewer replicas it is 1; in Kafka nothing could be written then.",
    )
    transaction_state_log_num_partitions = Option(
        "transaction.state.log.num.partitions", INT, 50, "How many partitions `__transaction_state` is created with.",
        minimum=1,
    )
    transaction_state_log_replication_factor = Option(
        "transaction.state.log.replication.factor", SHORT, 3, "How many replicas `__transaction_state` is to have.",
        minimum=1, deviation="With fewer brokers it is created with as many replicas as there are brokers, and gets "
        "more when there are more; Kafka creates it when there are enough.",
    )
    transaction_state_log_segment_bytes = Option(
        "transaction.state.log.segment.bytes", INT, 100 * 1024**2, "`segment.bytes` of `__transaction_state`.",
        minimum=1, unit="bytes",
    )
    transaction_two_phase_commit_enable = Option(
        "transaction.two.phase.commit.enable", BOOLEAN, False, "Whether producers may have transactions that another "
        "system ends and no time-out does (KIP-939), which hold readers up until then.",
        deviation="InitProducerId 6 is served where it is true; in Kafka with `unstable.api.versions.enable`.",
    )
    transactional_id_expiration_ms = Option(
        "transactional.id.expiration.ms", INT, 7 * DAY_MS, "How long an idle transactional id is remembered.",
        minimum=1, unit="ms",
    )
# fmt: on
