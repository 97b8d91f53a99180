"""Every measurement, in the order in which they are made and printed: a name, a part, and what does it."""

from collections.abc import Sequence
from functools import partial

from benchmarks.cluster_latency import measure_cluster_latency
from benchmarks.cluster_produce import measure_cluster_produce
from benchmarks.cluster_start import measure_cluster_start
from benchmarks.compaction import measure_compaction
from benchmarks.cores.fetch import measure_cores_fetch
from benchmarks.cores.idle import measure_cores_idle
from benchmarks.cores.java_produce import measure_cores_java_produce
from benchmarks.cores.produce import SHAPES as CORES_SHAPES
from benchmarks.cores.produce import measure_cores_produce
from benchmarks.cores.start import measure_cores_start
from benchmarks.cores.stop import measure_cores_stop
from benchmarks.cores.store import measure_cores_store
from benchmarks.empty_partitions import measure_empty_partitions
from benchmarks.failover import CONTROLLER_KILLED, KILLED, STOPPED, measure_failover
from benchmarks.fetch import measure_fetch
from benchmarks.full_partitions import measure_full_partitions
from benchmarks.groups.commit_rate import measure_commit_rate
from benchmarks.groups.coordinator_failover import measure_coordinator_failover
from benchmarks.groups.idle_groups import measure_idle_groups
from benchmarks.groups.member_load import measure_member_load
from benchmarks.groups.offsets_loading import measure_offsets_loading
from benchmarks.groups.rebalance import measure_rebalance
from benchmarks.growth import SERIES, measure_growth
from benchmarks.harness.bench import Measurement
from benchmarks.idle_connections import measure_idle_connections
from benchmarks.importing import measure_import
from benchmarks.java_consume import measure_java_consume
from benchmarks.java_produce import measure_java_produce
from benchmarks.latency import ARRIVAL, PRODUCE, measure_latency
from benchmarks.loop_lag import measure_loop_lag
from benchmarks.many_topics import measure_many_topics
from benchmarks.produce import SHAPES, measure_produce
from benchmarks.scale.constituents import measure_scale
from benchmarks.scale.simulated_cluster import measure_simulated_scale
from benchmarks.simulator import measure_simulator
from benchmarks.start import measure_memory, measure_start
from benchmarks.synced import measure_alone, measure_synced
from benchmarks.testkit.kill import measure_testkit_kill
from benchmarks.testkit.many import measure_testkit_many
from benchmarks.testkit.memory import measure_testkit_memory
from benchmarks.testkit.process import measure_testkit_process
from benchmarks.testkit.reset import measure_testkit_reset
from benchmarks.testkit.start import measure_testkit_start
from benchmarks.transactions import rate
from benchmarks.transactions.coordinator_failover import measure_transaction_failover
from benchmarks.transactions.idle_ids import measure_idle_ids
from benchmarks.transactions.own_rate import measure_own_rate
from benchmarks.transactions.passing import measure_passing

PARTS = ("start", "log", "cores", "cluster", "groups", "transactions", "testkit", "clients")

CATALOGUE: tuple[Measurement, ...] = (
    Measurement("import", "start", "what importing the broker costs", measure_import, is_paired=False),
    Measurement("start", "start", "start to first answer, and idle memory", measure_start),
    Measurement("memory", "start", "memory after 5 GB produced", measure_memory),
    Measurement(
        "full-partitions",
        "start",
        "start time with 1,000 partitions and 10 GB",
        measure_full_partitions,
        is_paired=False,
    ),
    Measurement(
        "empty-partitions",
        "start",
        "what 1,000, 5,000 and 10,000 empty partitions cost",
        measure_empty_partitions,
        is_paired=False,
    ),
    *(
        Measurement(
            f"{shape.name}{'-dirty' * is_dirty}",
            "log",
            f"{shape.title}{', after bytes without sync' * is_dirty}",
            partial(measure_produce, shape=shape, is_dirty=is_dirty),
        )
        for shape in SHAPES
        for is_dirty in (False, True)
    ),
    *(
        Measurement(
            f"java-produce-{record_bytes}",
            "log",
            f"ProducerPerformance (Java), {record_bytes} B records, acks=all",
            partial(measure_java_produce, record_bytes=record_bytes),
        )
        for record_bytes in (100, 1024)
    ),
    Measurement(PRODUCE.name, "log", PRODUCE.title, partial(measure_latency, steady=PRODUCE)),
    Measurement("fetch", "log", "raw fetch of 64 KiB, 1 MiB and 8 MiB a time, hot", measure_fetch),
    Measurement("java-consume", "log", "a Java consumer, 100 B records", measure_java_consume),
    Measurement(ARRIVAL.name, "log", ARRIVAL.title, partial(measure_latency, steady=ARRIVAL)),
    *(
        Measurement(
            f"synced-{partitions}",
            "log",
            f"fsync on every ack, 64 connections, partitions: {partitions}",
            partial(measure_synced, partitions=partitions),
        )
        for partitions in (1, 64)
    ),
    Measurement("synced-alone", "log", "fsync on every ack, one connection alone", measure_alone),
    Measurement(
        "compaction", "log", "p99 of Produce while 1 GB is compacted", measure_compaction, other_parts=("cores",)
    ),
    Measurement(
        "compaction-100",
        "log",
        "the same of records of 100 B",
        partial(measure_compaction, record_bytes=100),
        other_parts=("cores",),
    ),
    Measurement(
        "idle-connections",
        "log",
        "memory of connections that do nothing",
        measure_idle_connections,
        is_paired=False,
    ),
    Measurement("loop-lag", "log", "how late the event loop is under load", measure_loop_lag, is_paired=False),
    *(
        Measurement(series.name, "log", f"how cost grows: {series.title}", partial(measure_growth, series=series))
        for series in SERIES
    ),
    Measurement(
        "cores-start",
        "cores",
        "two processes: start, and memory of a process more",
        measure_cores_start,
        is_paired=False,
    ),
    Measurement("cores-stop", "cores", "two processes: stop under load", measure_cores_stop, is_paired=False),
    Measurement("cores-idle", "cores", "four processes that do nothing", measure_cores_idle, is_paired=False),
    *(
        Measurement(
            f"{shape.name}{'-dirty' * is_dirty}",
            "cores",
            f"two processes: produce, {shape.title}, 8 connections{', after bytes without sync' * is_dirty}",
            partial(measure_cores_produce, shape=shape, is_dirty=is_dirty),
            is_paired=False,
        )
        for shape in CORES_SHAPES
        for is_dirty in (False, True)
    ),
    Measurement(
        "cores-fetch", "cores", "two processes: fetch, hot, 8 connections", measure_cores_fetch, is_paired=False
    ),
    *(
        Measurement(
            f"cores-java-produce-{record_bytes}",
            "cores",
            f"two processes: ProducerPerformance (Java), 12 partitions, {record_bytes} B records, acks=all",
            partial(measure_cores_java_produce, record_bytes=record_bytes),
            is_paired=False,
        )
        for record_bytes in (100, 1024)
    ),
    Measurement("cores-store", "cores", "commits of the supervisor's store", measure_cores_store, is_paired=False),
    Measurement("cluster-produce", "cluster", "produce to three replicas, acks=all", measure_cluster_produce),
    Measurement("cluster-latency", "cluster", "the same at 2,000/s of 1 KiB, by librdkafka", measure_cluster_latency),
    *(
        Measurement(each.name, "cluster", each.title, partial(measure_failover, strike=each), is_paired=False)
        for each in (KILLED, CONTROLLER_KILLED, STOPPED)
    ),
    Measurement("scale", "cluster", "the constituents of docs/scale.md", measure_scale, is_paired=False),
    Measurement(
        "simulated-scale",
        "cluster",
        "a hundred brokers in the simulator, with costs fed in",
        measure_simulated_scale,
        is_paired=False,
    ),
    Measurement("many-topics", "cluster", "1,000 topics, three replicas each", measure_many_topics, is_paired=False),
    Measurement(
        "cluster-start",
        "cluster",
        "three brokers in one process: start to the first record kept by all, and memory",
        measure_cluster_start,
        is_paired=False,
    ),
    Measurement(
        "simulator",
        "cluster",
        "virtual seconds of the simulator in a second of a core",
        measure_simulator,
        is_paired=False,
    ),
    Measurement("idle-groups", "groups", "what groups cost that do nothing", measure_idle_groups, is_paired=False),
    Measurement("commit-rate", "groups", "offset commits a second", measure_commit_rate, is_paired=False),
    Measurement("rebalance", "groups", "50 members: join to stable", measure_rebalance, is_paired=False),
    Measurement("member-load", "groups", "500 members, 5,000 groups, storms", measure_member_load, is_paired=False),
    Measurement("offsets-loading", "groups", "loading of a million offsets", measure_offsets_loading, is_paired=False),
    Measurement(
        "coordinator-failover",
        "groups",
        "SIGKILL of a coordinator until a commit is acknowledged",
        measure_coordinator_failover,
        is_paired=False,
    ),
    *(
        Measurement(shape.name, "transactions", shape.title, partial(rate.measure_rate, shape=shape), is_paired=False)
        for shape in rate.SHAPES
    ),
    Measurement(
        "own-transactions",
        "transactions",
        "records/s of our producer in transactions of 10,000, and without",
        measure_own_rate,
        is_paired=False,
    ),
    Measurement(
        "passing",
        "transactions",
        "offsets passed by readers of committed records, 10 % aborted",
        measure_passing,
        is_paired=False,
    ),
    Measurement(
        "transaction-failover",
        "transactions",
        "SIGKILL of a transaction coordinator until its id commits again",
        measure_transaction_failover,
        is_paired=False,
    ),
    Measurement("idle-ids", "transactions", "memory of idle transactional ids", measure_idle_ids, is_paired=False),
    Measurement(
        "testkit-start",
        "testkit",
        "brokers in threads of a test: start to the first record",
        measure_testkit_start,
        is_paired=False,
    ),
    Measurement(
        "testkit-process",
        "testkit",
        "a new process: start to the first record on three brokers",
        measure_testkit_process,
        is_paired=False,
    ),
    Measurement(
        "testkit-kill",
        "testkit",
        "kill() of a leader until the next record is acknowledged",
        measure_testkit_kill,
        is_paired=False,
    ),
    Measurement("testkit-reset", "testkit", "reset() with 50 topics", measure_testkit_reset, is_paired=False),
    Measurement("testkit-memory", "testkit", "memory of a fixture", measure_testkit_memory, is_paired=False),
    Measurement("testkit-many", "testkit", "1,000 tests in one process", measure_testkit_many, is_paired=False),
)


def chosen(measurements: Sequence[Measurement], parts: Sequence[str], names: Sequence[str]) -> list[Measurement]:
    """Those of the parts and names that were asked for; nothing asked for is everything."""
    return [
        measurement
        for measurement in measurements
        if (not parts or measurement.is_of(parts)) and (not names or measurement.name in names)
    ]
