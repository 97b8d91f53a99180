"""What Apache Kafka's performance tools print is read: excerpts of their own output, and what stands for a failure."""

import pytest

from benchmarks.harness.java_tools import CONSUMED, SENT, parse_rate
from benchmarks.load.replies import LoadFailed

PRODUCED = """379833 records sent, 75966.6 records/sec (7.24 MB/sec), 1424.6 ms avg latency, 2101.0 ms max latency.
1000000 records sent, 130736.043927 records/sec (12.47 MB/sec), 1454.91 ms avg latency, 2161.00 ms max latency, \
1490 ms 50th, 2053 ms 95th, 2132 ms 99th, 2157 ms 99.9th.
"""
READ = """start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, \
fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-11-21 22:45:50:265, 2026-11-21 22:45:55:329, 95.3674, 18.8324, 1000064, 197472.3539, 3210, 1854, 51.4387, 539408.8
"""


def test_the_last_line_counts_and_not_those_on_the_way() -> None:
    assert parse_rate(SENT, PRODUCED, 1_000_000) == 130736.043927


def test_the_rate_of_a_consumer_is_that_without_the_time_its_group_took() -> None:
    assert parse_rate(CONSUMED, READ, 1_000_000) == 539408.8


@pytest.mark.parametrize(("pattern", "printed"), [(SENT, PRODUCED), (CONSUMED, READ), (SENT, ""), (SENT, READ)])
def test_fewer_records_than_asked_for_are_a_failure(pattern: "object", printed: str) -> None:
    with pytest.raises(LoadFailed, match="not all of 2000000 records"):
        parse_rate(pattern, printed, 2_000_000)  # type: ignore[arg-type]
