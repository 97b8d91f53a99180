"""`odradek transactions` and `odradek producers` against our own broker, with producers by raw messages."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.options import Target
from odradek.client.commands.producers import producers
from odradek.client.commands.transactions import transactions
from tests.broker.wire import RawClient, connected, create_topic, running_broker
from tests.client.commands.scripted import ran_command, ran_on
from tests.client.raw_producer import RawProducer

OPTIONS = {"transaction.state.log.num.partitions": "3", "transaction.partition.verification.enable": "false"}
Printed = pytest.CaptureFixture[str]


@asynccontextmanager
async def serving() -> AsyncGenerator[tuple[Target, RawClient]]:
    """A broker with a topic, and a connection for producers."""
    async with running_broker(OPTIONS) as broker, connected(broker) as client:
        await create_topic(client, "orders", 2)
        endpoint = next(iter(broker.bound.values()))
        yield Target(bootstrap_server=f"{endpoint.host}:{endpoint.port}"), client


async def producer_of(target: Target, client: RawClient, transactional_id: str) -> RawProducer:
    async with target.admin() as admin:
        its = (await admin.fence_producers([transactional_id]))[transactional_id]
    return RawProducer(client, transactional_id, its.producer_id, its.producer_epoch)


def lines(printed: Printed) -> list[list[str]]:
    return [line.split("\t") for line in printed.readouterr().out.splitlines()]


async def test_a_hanging_transaction_is_found_and_ended_beside_one_that_is_not(capsys: Printed) -> None:
    async with serving() as (target, client):
        known, hangs = [await producer_of(target, client, each) for each in ("payments", "refunds")]
        assert await known.send("orders", 0, b"a") == 0
        assert await hangs.send_unknown("orders", 0, b"b") == 1
        assert await ran_command(target, producers, "orders") is None
        assert [(row[2], row[-1]) for row in lines(capsys)] == [
            (str(known.producer_id), "0"),
            (str(hangs.producer_id), "1"),
        ]
        assert await ran_on(target, transactions, "list", "--hanging") is None
        ((*row, age_minutes),) = lines(capsys)
        assert row == ["orders", "0", str(hangs.producer_id), "0", "-", "1", "1970-01-01T00:00:01Z"]
        assert int(age_minutes) > 365 * 24 * 60
        error = await ran_on(target, transactions, "abort", "orders-0", "--start-offset", "0", "--execute")
        assert isinstance(error, CommandFailed)
        assert "it is that of payments, Ongoing, and would be torn" in str(error)
        assert await ran_on(target, transactions, "abort", "orders-0", "--start-offset", "1", "--execute") is None
        assert lines(capsys) == [["orders", "0", str(hangs.producer_id), "0", "0"]]
        assert await ran_on(target, transactions, "list", "--hanging") is None
        assert lines(capsys) == []
        assert await ran_command(target, producers, "orders", "--open") is None
        assert [row[2] for row in lines(capsys)] == [str(known.producer_id)]


async def test_an_id_is_shown_and_aborted(capsys: Printed) -> None:
    async with serving() as (target, client):
        producer = await producer_of(target, client, "payments")
        await producer.send("orders", 1, b"a")
        assert await ran_on(target, transactions, "list", "--state", "Ongoing", "--duration-filter", "0") is None
        (row,) = lines(capsys)
        assert row == ["payments", "0", str(producer.producer_id), "Ongoing"]
        assert await ran_on(target, transactions, "describe", "payments", "--json") is None
        (found,) = json.loads(capsys.readouterr().out)
        assert (found["state"], found["partitions"]) == ("Ongoing", [{"topic": "orders", "partition": 1}])
        assert await ran_on(target, transactions, "abort", "--transactional-id", "payments", "--execute") is None
        assert lines(capsys) == [["payments", str(producer.producer_id), "0", "orders:1"]]
        assert await ran_on(target, transactions, "describe", "payments") is None
        ((*_, state, _, started, age_s, places),) = lines(capsys)
        assert state in ("Empty", "CompleteAbort")
        assert (started, age_s, places) == ("-", "-", "-")
        assert await ran_command(target, producers, "orders", "--open") is None
        assert lines(capsys) == []
