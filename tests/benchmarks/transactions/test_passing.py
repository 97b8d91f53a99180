"""The topic has what its figures say, and both readers of both kinds find exactly that."""

import pytest

from benchmarks.harness.servers import Server
from benchmarks.load.replies import LoadFailed
from benchmarks.transactions.passing import PARTITIONS, fill, pass_twice
from benchmarks.transactions.reader import Client, Reading, run_reader


@pytest.mark.parametrize("client", ["odradek", "librdkafka"])
def test_readers_pass_all_offsets(transaction_server: Server, client: Client) -> None:
    topic = f"passed-{client}"
    written = fill(transaction_server, topic, 4_000)
    assert (written.records, written.committed, written.offsets) == (4_000, 3_600, 4_040)
    run = pass_twice(client, {transaction_server.name: written}, transaction_server)
    assert run.values["ratio"] == run.values["read_committed"] / run.values["read_uncommitted"]


def test_a_reader_that_is_given_aborted_records_has_failed(transaction_server: Server) -> None:
    written = fill(transaction_server, "misread", 4_000)
    reading = Reading(
        transaction_server.address, "misread", "odradek", "read_uncommitted", PARTITIONS, written.committed + 1
    )
    with pytest.raises(LoadFailed, match="gave 4000 records, and there are 3601"):
        run_reader(reading)
