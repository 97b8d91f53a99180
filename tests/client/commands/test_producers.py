"""`odradek producers` on a scripted cluster: the producers of topics, with their open transactions."""

import json

import pytest
from click.testing import CliRunner

from odradek.cli import main
from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands.producers import producers
from odradek.protocol.errors import ErrorCode
from tests.client.admin_handlers import serve_admin
from tests.client.commands.scripted import on_terminal, ran_alone
from tests.client.scripted_broker import scripted_cluster
from tests.client.transaction_handlers import serve_transactions

Printed = pytest.CaptureFixture[str]


def test_a_topic_has_to_be_named() -> None:
    done = CliRunner().invoke(main, ["producers", "-b", "localhost:1"])
    assert done.exit_code == 2
    assert "Missing argument" in done.output


@pytest.mark.virtual_time
async def test_the_producers_of_all_partitions_are_shown(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_cluster(brokers=2) as scripted:
        serve_admin(scripted)
        scripted.create_topic("orders", 3)
        served = serve_transactions(scripted)
        served.open("orders", 2, 9, at=5, timestamp_ms=3_000)
        idle = served.open("orders", 2, 8, at=-1, timestamp_ms=-1)
        idle.last_sequence, idle.coordinator_epoch = -1, 6
        served.open("orders", 0, 7, at=0)
        assert await ran_alone(scripted, producers, "orders") is None
        assert capsys.readouterr().out.splitlines() == [
            "orders\t0\t7\t3\t-\t4\t1970-01-01T00:00:01Z\t0",
            "orders\t2\t8\t3\t6\t-\t-\t-",
            "orders\t2\t9\t3\t-\t4\t1970-01-01T00:00:03Z\t5",
        ]
        assert await ran_alone(scripted, producers, "orders:2", "--json") is None
        assert json.loads(capsys.readouterr().out) == [
            {
                "topic": "orders", "partition": 2, "producer_id": 8, "producer_epoch": 3, "coordinator_epoch": 6,
                "last_sequence": None, "last_timestamp_ms": None, "transaction_start_offset": None,
            },
            {
                "topic": "orders", "partition": 2, "producer_id": 9, "producer_epoch": 3, "coordinator_epoch": None,
                "last_sequence": 4, "last_timestamp_ms": 3_000, "transaction_start_offset": 5,
            },
        ]  # fmt: skip
        on_terminal(monkeypatch)
        assert await ran_alone(scripted, producers, "orders:1,2", "--open") is None
        header, row = capsys.readouterr().out.splitlines()
        assert header.split()[-2:] == ["OPEN", "SINCE"]
        assert row.split()[:3] == ["orders", "2", "9"]


@pytest.mark.virtual_time
async def test_a_partition_that_cannot_be_looked_at_is_told_with_the_others(capsys: Printed) -> None:
    with scripted_cluster() as scripted:
        serve_admin(scripted)
        scripted.create_topic("orders", 2)
        served = serve_transactions(scripted)
        served.open("orders", 1, 9, at=5)
        served.partition_errors["orders", 0] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        error = await ran_alone(scripted, producers, "orders")
        assert [line.split("\t")[2] for line in capsys.readouterr().out.splitlines()] == ["9"]
        assert isinstance(error, ItemsFailed)
        assert [each.code for each in error.errors.values()] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
