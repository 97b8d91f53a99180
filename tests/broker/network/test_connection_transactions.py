"""Produces of one connection in a transaction: whoever waits for the coordinator's word about the first batch, holds up
those behind it until it has been appended, and no longer. A batch that came first would be out of order."""

import asyncio

import pytest

from odradek.broker.txn.inclusion import Inclusions
from odradek.broker.txn.peer_requests import Included, Inclusion
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceRequest
from tests.broker.api.producing import idempotent
from tests.broker.network.test_connection import connections
from tests.broker.network.test_connection_pipelined import answered, follow, led, until
from tests.broker.wire import RawClient, produce

pytestmark = pytest.mark.both_loops


class Coordinator:
    """Says yes to all, once `answer` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.answer = asyncio.Event()
        coordinator = self

        async def ask(inclusions: Inclusions, question: Inclusion) -> Included:
            del inclusions
            coordinator.asked += 1
            await coordinator.answer.wait()
            return dict.fromkeys(question.partitions, ErrorCode.NONE)

        monkeypatch.setattr(Inclusions, "ask", ask)


def numbered(sequence: int) -> ProduceRequest:
    sent = produce("orders", idempotent(sequence, txn=True), timeout_ms=10_000)
    sent.transactional_id = "payments"
    return sent


def send(client: RawClient, *sequences: int) -> list[int]:
    return [client.send(numbered(sequence), 9) for sequence in sequences]


async def test_those_behind_the_first_batch_of_a_transaction_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are all appended before one of them is replicated; only the first one asked."""
    coordinator = Coordinator(monkeypatch)
    async with led() as (_, client, partition):
        sent = send(client, 0, 1)
        await until(lambda: coordinator.asked > 0)
        coordinator.answer.set()
        await until(lambda: partition.log.log_end_offset > 0)
        sent += send(client, 2)
        await until(lambda: partition.log.log_end_offset == 3)
        assert coordinator.asked == 1
        follow(partition, 3)
        told = [await answered(client) for _ in sent]
    assert [correlation_id for correlation_id, _ in told] == sent
    assert [(answer.error_code, answer.base_offset) for _, answer in told] == [(0, offset) for offset in range(3)]


async def test_a_client_that_vanishes_while_the_coordinator_is_asked_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coordinator = Coordinator(monkeypatch)
    async with led() as (broker, client, partition):
        send(client, 0, 1)
        await until(lambda: coordinator.asked > 0)
        client.writer.close()
        await until(lambda: not connections(broker))
        coordinator.answer.set()
        assert partition.log.log_end_offset == 0
        assert broker.memory.held_bytes == 0
