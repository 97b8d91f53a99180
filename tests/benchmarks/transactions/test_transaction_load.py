"""Both clients commit transactions to a real broker, which has every record of them; what they print is read."""

import pytest

from benchmarks.harness.servers import Server
from benchmarks.load.replies import LoadFailed
from benchmarks.transactions.transaction_load import Client, Committed, TransactionLoad, parse, run_transactions
from benchmarks.transactions.transaction_topic import require_committed, transaction_topic


@pytest.mark.parametrize("client", ["java", "librdkafka"])
def test_what_a_client_commits_is_there(transaction_server: Server, client: Client) -> None:
    topic = f"committed-by-{client}"
    with transaction_topic(transaction_server, topic, 3) as places:
        load = TransactionLoad(
            transaction_server.address, topic, topic, producers=2, records=3, warm_s=0.1, measured_s=0.2
        )
        told = run_transactions(client, load)
        assert told.per_s > 0
        assert told.committed >= 4, "two of each producer: one to get warm, one measured"
        require_committed(places, topic, 3 * told.committed)


@pytest.mark.parametrize("client", ["java", "librdkafka"])
def test_a_transaction_that_fails_ends_the_run(transaction_server: Server, client: Client) -> None:
    load = TransactionLoad(
        transaction_server.address,
        "large",
        "large",
        producers=2,
        records=1,
        warm_s=0,
        measured_s=1,
        value_bytes=3_000_000,
    )
    with transaction_topic(transaction_server, "large", 1), pytest.raises(LoadFailed, match=r"(?i)large"):
        run_transactions(client, load)


def test_the_last_line_that_is_printed_counts() -> None:
    assert parse('a warning\n{"per_s": 2.5, "committed": 7}\n') == Committed(2.5, 7)


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("", "does not say"),
        ("a warning\n", "does not say"),
        ('{"per_s": 2.5}', "does not say"),
        ('{"per_s": 0, "committed": 3}', "no transaction"),
        ('{"per_s": 0, "committed": 0}', "no transaction"),
    ],
)
def test_a_load_that_measured_nothing_has_failed(printed: str, why: str) -> None:
    with pytest.raises(LoadFailed, match=why):
        parse(printed)
