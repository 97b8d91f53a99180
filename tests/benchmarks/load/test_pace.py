"""Schedules and what is chosen from them by time: with numbers worked out by hand, and for any rate."""

from array import array

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load.frames import batches_of
from benchmarks.load.pace import NS_PER_S, RECORD_OVERHEAD, Pace, Paced, Schedule, paced_load
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.records import iterate_records


def test_requests_are_due_at_even_distances() -> None:
    schedule = Schedule(begin_ns=1000, rate_per_s=5000, count=10)
    assert [schedule.due_ns(number) for number in range(4)] == [1000, 201_000, 401_000, 601_000]


def test_rounding_does_not_add_up() -> None:
    schedule = Schedule(0, rate_per_s=3, count=10**6)
    assert schedule.due_ns(3 * 10**5) == 10**5 * NS_PER_S


@given(
    begin_ns=st.integers(0, 2**62),
    rate_per_s=st.one_of(st.integers(1, 100_000), st.floats(0.1, 100_000)),
    count=st.integers(0, 10**7),
    data=st.data(),
)
def test_the_first_request_from_a_moment_on_is_found(
    begin_ns: int, rate_per_s: float, count: int, data: st.DataObject
) -> None:
    schedule = Schedule(begin_ns, rate_per_s, count)
    moment_ns = data.draw(st.integers(begin_ns - NS_PER_S, schedule.due_ns(count) + NS_PER_S))
    number = schedule.number_at(moment_ns)
    assert 0 <= number <= count
    assert number == 0 or schedule.due_ns(number - 1) < moment_ns
    assert number == count or schedule.due_ns(number) >= moment_ns


def test_latencies_are_chosen_by_when_requests_were_due() -> None:
    pace = Pace(paced_load("t", 1.0, 10, 0, connections=1, record_bytes=1024).load, 10)
    paced = Paced(begin_ns=5 * NS_PER_S, latencies_ns=array("q", range(10)))
    assert list(paced.due_from(pace, 5 * NS_PER_S + 200_000_000, 5 * NS_PER_S + 500_000_000)) == [2, 3, 4]
    assert list(paced.due_from(pace, 0, 2**63)) == list(range(10))
    assert list(paced.due_from(pace, 6 * NS_PER_S, 2**63)) == []


def test_a_load_at_a_pace_is_one_record_a_request_and_lasts_as_long_as_it_should() -> None:
    pace = paced_load("t", 2.0, 5000, 1_700_000_000_000, connections=4, record_bytes=1024)
    assert (pace.count, pace.load.acks, pace.load.partitions) == (10_000, -1, 4)
    batch = batches_of(pace.load)[0]
    assert len(batch) == 1024 + RECORD_OVERHEAD
    assert read_header(batch).record_count == 1
    (record,) = iterate_records(batch)
    assert len(record.value or b"") == 1024
    assert Pace.from_json(pace.to_json()) == pace
