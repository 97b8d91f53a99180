"""The plan: how much is measured, how often, and how long Apache Kafka is warmed up. The issue's conditions are the
defaults; `Plan.small` is for trying something out, and decides nothing."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

MEBIBYTE = 1024 * 1024
GIBIBYTE = 1024 * MEBIBYTE
MEGABYTE = 1_000_000
GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. `warm_s` is how long Kafka is under load at first at least, `warm_s_max` at most,
    `rewarm_s` before each run; `dirty_bytes` are produced without sync before the runs of second rows."""

    touches_memory: bool = True  # before anything else, see machine.touch_memory
    runs: int = 5
    run_bytes: int = GIBIBYTE
    record_bytes: int = 1024
    dirty_bytes: int = 4 * GIBIBYTE
    filling_bytes: int = 5 * GIGABYTE  # produced before memory is read
    warm_s: float = 40.0
    warm_s_max: float = 240.0
    rewarm_s: float = 5.0
    idle_s: float = 5.0
    discarded_s: float = 10.0  # of a run at a steady rate, before what is measured
    measured_s: float = 60.0
    fetch_passes: int = 4  # over the log, in a run
    synced_requests: int = 20_000  # in a run in which every acknowledgement is synced
    full_partitions: int = 1000
    partition_bytes: int = 10 * MEGABYTE
    empty_partitions: tuple[int, ...] = (1000, 5000, 10_000)
    idle_connections: int = 8000
    compacted_bytes: int = GIGABYTE
    growth_bytes: int = GIBIBYTE // 4  # produced in a run of the tables that show how cost grows
    cluster_run_bytes: int = 2 * GIBIBYTE  # produced in a run to a cluster
    cluster_slice_bytes: int = GIBIBYTE // 4  # and in a slice of its warm-up
    kills: int = 50  # of leaders that are nothing else, for the time until somebody else leads
    hard_kills: int = 20  # of leaders that are controllers, and as many of leaders that stand still
    kafka_kills: int = 10  # of each, for Kafka
    many_topics: int = 1000
    many_topics_runs: int = 3
    many_topics_idle_s: float = 60.0
    scale_partitions: tuple[int, ...] = (10_000, 100_000)
    scale_commits: int = 2000
    scale_lost_partitions: int = 3000
    scale_run_bytes: int = GIBIBYTE // 2  # produced in a run to a cluster, by batch size
    scale_runs: int = 3
    simulated_scale: tuple[tuple[int, int], ...] = ((3, 300), (10, 1000), (30, 3000), (100, 10_000))
    """Brokers and partitions."""
    group_commits: int = 64_000  # in a run, of all groups together
    idle_groups: int = 10_000
    idle_groups_s: float = 60.0
    loaded_offsets: int = 1_000_000
    coordinator_kills: int = 20
    group_members: int = 500  # of one group, for each protocol
    storm_groups: int = 5000  # whose members join at once
    transactions_s: float = 5.0  # of a run, after a quarter of it that is not measured
    own_records: int = 500_000  # of our own producer, in a run
    passed_records: int = 2_000_000  # of the topic that readers pass
    transactional_ids: int = 10_000  # that are idle
    testkit_runs: int = 9  # of what the test kit does
    testkit_processes: int = 5  # that are started in each of them
    testkit_topics: int = 50  # of a cluster that is reset
    testkit_tests: int = 1000  # in one process, of our client; a tenth of others
    testkit_tests_runs: int = 3

    @classmethod
    def small(cls) -> Self:
        """A few seconds a figure."""
        return cls(
            touches_memory=False,
            runs=1,
            run_bytes=64 * MEBIBYTE,
            dirty_bytes=128 * MEBIBYTE,
            filling_bytes=128 * MEGABYTE,
            warm_s=1.0,
            warm_s_max=3.0,
            rewarm_s=0.1,
            idle_s=0.5,
            discarded_s=1.0,
            measured_s=3.0,
            fetch_passes=1,
            synced_requests=1000,
            full_partitions=50,
            partition_bytes=MEGABYTE,
            empty_partitions=(20, 60, 100),
            idle_connections=200,
            compacted_bytes=64 * MEGABYTE,
            growth_bytes=32 * MEBIBYTE,
            cluster_run_bytes=64 * MEBIBYTE,
            cluster_slice_bytes=16 * MEBIBYTE,
            kills=3,
            hard_kills=2,
            kafka_kills=1,
            many_topics=20,
            many_topics_runs=1,
            many_topics_idle_s=3.0,
            scale_partitions=(300, 3000),
            scale_commits=160,
            scale_lost_partitions=60,
            scale_run_bytes=16 * MEBIBYTE,
            scale_runs=1,
            simulated_scale=((3, 50), (4, 100)),
            group_commits=1280,
            idle_groups=200,
            idle_groups_s=1.0,
            loaded_offsets=20_000,
            coordinator_kills=1,
            group_members=20,
            storm_groups=50,
            transactions_s=0.5,
            own_records=40_000,
            passed_records=20_000,
            transactional_ids=200,
            testkit_runs=1,
            testkit_processes=2,
            testkit_topics=5,
            testkit_tests=20,
            testkit_tests_runs=1,
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON gives it back, which has no tuples."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return values
