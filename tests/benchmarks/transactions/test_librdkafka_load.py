"""The rates of several producers are one rate."""

from benchmarks.transactions.librdkafka_load import together
from benchmarks.transactions.transaction_load import Committed


def test_rates_and_counts_of_all_producers_are_added_up() -> None:
    assert together([Committed(2.5, 7), Committed(1.5, 4)]) == Committed(4.0, 11)
