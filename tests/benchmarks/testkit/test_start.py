"""Every line that the measurement tells its worker is one that the worker knows."""

from benchmarks.testkit.programs.worker import FIRST_RECORDS
from benchmarks.testkit.start import BARS, line_of


def test_each_number_of_brokers_is_started_for_each_client_that_the_worker_has() -> None:
    assert set(BARS) == {(brokers, client) for brokers in (1, 3) for client in FIRST_RECORDS}
    assert line_of(3, "kafka-python").split() == ["start", "3", "kafka-python"]
