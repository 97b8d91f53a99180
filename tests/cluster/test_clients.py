"""Readers are waited for until they have been given what was acknowledged, and named when they are not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.testing.sim.checking.history import Acknowledged, History, Polled, PollFailed, Record
from processes.cluster_processes import Processes
from tests.cluster.clients import Client, Clients
from tests.cluster.librdkafka_reader import STOOD_STILL


def told(client: Client, records: Sequence[Record]) -> None:
    with Path(client.job.file).open("a") as file:
        file.write(History(list(records)).to_json())


def test_a_reader_that_was_not_given_everything_is_waited_for_and_named(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        clients = Clients(processes, "127.0.0.1:1", "t", 1, kinds=("odradek", "odradek-reader", "librdkafka-reader"))
        [producer], [ours, other] = clients.producers, clients.readers
        told(producer, [Acknowledged(1.0, value, "t", 0, value) for value in range(2)])
        told(ours, [Polled(2.0, 2.0, "r", "t", 0, 0, [(0, 0), (1, 1)])])
        told(other, [Polled(2.0, 2.0, "r", "t", 0, 0, [(0, 0)]), PollFailed(3.0, 2.0, "r", "t", repr(STOOD_STILL))])
        with pytest.raises(AssertionError, match=r"\['librdkafka-reader'\] have not read everything"):
            clients.wait_for_reading(0.01)
        assert clients.stood_still() == 1
        told(other, [Polled(4.0, 4.0, "r", "t", 0, 1, [(1, 1)])])
        clients.wait_for_reading()
