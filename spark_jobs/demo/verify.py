"""What the broker holds and what Spark computed, checked without Spark."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from odradek.spark_jobs.daily import LATE_MINUTES, DailyDelays
from odradek.spark_jobs.demo.load import REPORT_EVERY, Digest
from odradek.spark_jobs.demo.steps import Completed, DemoFailed
from odradek.spark_jobs.flight_data import Flight

STALL_TIMEOUT_S = 30.0
DIFFERENCES_SHOWN = 5

Results = dict[tuple[str, date], DailyDelays]


# -- the topic -------------------------------------------------------------------------------------------------------


def read_back(bootstrap: str, topic: str, completed: Completed) -> Digest:
    """The digest of all records of a topic's only partition; raises DemoFailed when offsets have gaps."""
    found = Digest()
    for record in read_records(bootstrap, topic):
        if record.offset != found.count:
            raise DemoFailed(f"{topic}: offset {record.offset:,} where {found.count:,} was expected")
        found.add(record.key, record.value)
        if found.count % REPORT_EVERY == 0:
            completed(found.count)
    return found


def read_records(
    bootstrap: str,
    topic: str,
    isolation_level: str = "read_uncommitted",
    offsets: Mapping[int, range] | None = None,
) -> Iterator[ConsumerRecord]:
    """The records at these offsets, by partition, or all from where they start to where they end now, each partition's
    in its order; raises DemoFailed when none come for a while."""
    with KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, fetch_max_bytes=8 << 20, isolation_level=isolation_level
    ) as consumer:
        partitions = [TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic) or ())]
        if offsets is None:
            starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
            offsets = {each.partition: range(starts[each], ends[each]) for each in partitions}
        left = [each for each in partitions if offsets[each.partition]]
        consumer.assign(left)
        for partition in left:
            consumer.seek(partition, offsets[partition.partition].start)
        deadline = time.monotonic() + STALL_TIMEOUT_S
        # By position: the last offsets may be those of markers, and of records that are aborted.
        while left := [each for each in left if (consumer.position(each) or 0) < offsets[each.partition].stop]:
            for partition, records in consumer.poll(timeout_ms=1_000, max_records=10_000).items():
                yield from (record for record in records if record.offset in offsets[partition.partition])
                deadline = time.monotonic() + STALL_TIMEOUT_S
            if time.monotonic() > deadline:
                raise DemoFailed(f"{topic}: no more records, though these have not come to their ends: {left}")


def record_count(bootstrap: str, topic: str) -> int:
    """How many records partition 0 holds."""
    partition = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=bootstrap, group_id=None) as consumer:
        ends, starts = consumer.end_offsets([partition]), consumer.beginning_offsets([partition])
        return ends[partition] - starts[partition]


# -- the statistics --------------------------------------------------------------------------------------------------


def statistics_without_spark(flights: Iterable[Flight]) -> Results:
    """The same statistics as `transforms.daily_delays`, in plain Python."""
    delays: dict[tuple[str, date], list[int]] = {}
    scheduled: dict[tuple[str, date], int] = {}
    for flight in flights:
        key = (str(flight["carrier"]), date.fromisoformat(str(flight["time_hour"])[:10]))
        scheduled[key] = scheduled.get(key, 0) + 1
        delays.setdefault(key, [])
        if isinstance(delay := flight["dep_delay"], int):
            delays[key].append(delay)
    return {key: _daily(key, count, sorted(delays[key])) for key, count in scheduled.items()}


def _daily(key: tuple[str, date], flights: int, delays: list[int]) -> DailyDelays:
    return DailyDelays(
        carrier=key[0],
        day=key[1],
        flights=flights,
        cancelled=flights - len(delays),
        late=sum(delay >= LATE_MINUTES for delay in delays),
        delay_sum=sum(delays),
        mean_delay=sum(delays) / len(delays) if delays else None,
        p95_delay=_percentile(delays, 0.95) if delays else None,
        max_delay=delays[-1] if delays else None,
    )


def _percentile(ordered: list[int], share: float) -> float:
    """Linear interpolation between the two neighbours of the rank (numpy's default, Hyndman and Fan's type 7)."""
    rank = share * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (rank - low) * (ordered[high] - ordered[low])


def differences(expected: Results, found: Results) -> list[str]:
    """One line for each carrier and day that is missing, unexpected, or has another value."""
    lines = [f"{carrier} {day}: no result" for carrier, day in expected.keys() - found.keys()]
    lines += [f"{carrier} {day}: a result without flights" for carrier, day in found.keys() - expected.keys()]
    for key in expected.keys() & found.keys():
        for name in DailyDelays.__slots__:
            wanted, got = getattr(expected[key], name), getattr(found[key], name)
            if not _same(wanted, got):
                lines.append(f"{key[0]} {key[1]}: {name} is {got}, without Spark {wanted}")
    return sorted(lines)


def _same(wanted: object, got: object) -> bool:
    # Two orders of adding and interpolating may differ in a float's last digits, and in nothing else.
    if isinstance(wanted, float) and isinstance(got, float | int):
        return math.isclose(wanted, got, rel_tol=1e-9, abs_tol=1e-9)
    return wanted == got
