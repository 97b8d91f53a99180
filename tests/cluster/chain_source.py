"""The source of an exactly-once chain: our producer writes numbers in transactions, and aborts one in four.

The numbers of an aborted one are written again in the next. What stands in its history as acknowledged was committed.
"""

import asyncio
import random
from typing import Final

from odradek.client.errors.transaction_errors import CommitOutcomeUnknown
from odradek.client.producer.producer import Producer
from odradek.client.producer.results.delivery import Delivery
from odradek.client.producer.results.produce_results import Ack
from odradek.testing.sim.checking.history import Acknowledged
from odradek.testing.sim.checking.numbered import encoded
from tests.cluster.client_session import RECONNECT_MS, REQUEST_TIMEOUT_MS, Session
from tests.cluster.copying import ABORT_CHANCE, Aborted

EACH: Final = 40
"""So many numbers are in a transaction."""
PAUSE_S: Final = 0.4
TIMEOUT_MS: Final = 60_000
"""Longer than any fault: nobody but the source ends its transactions."""
PAYLOAD_BYTES: Final = 100


def write_chain_source(session: Session) -> None:
    asyncio.run(_write(session))


async def _write(session: Session) -> None:
    """Raises ClientError where a transaction fails that is not to fail: no fault of a broker should have it."""
    job, rng, first = session.job, random.Random(session.job.name), 0
    async with Producer(
        job.bootstrap,
        client_id=job.name,
        transactional_id=job.transactional_id,
        transaction_timeout_ms=TIMEOUT_MS,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        reconnect_backoff_max_ms=RECONNECT_MS,
    ) as producer:
        while not session.stop.is_set():
            numbers = range(first, first + EACH)
            try:
                acks = await _transaction(producer, job.topic, job.partitions, numbers, rng.random() < ABORT_CHANCE)
            except Aborted:
                pass
            else:
                first += EACH
                for number, ack in zip(numbers, acks, strict=True):
                    session.add(Acknowledged(0.0, number, job.topic, ack.partition, ack.offset))
            await asyncio.sleep(PAUSE_S)


async def _transaction(producer: Producer, topic: str, partitions: int, numbers: range, aborts: bool) -> list[Ack]:
    txn, deliveries = producer.transaction(), list[Delivery]()
    try:
        async with txn:
            for number in numbers:
                deliveries.append(await txn.send(topic, encoded(number, PAYLOAD_BYTES), partition=number % partitions))
            if aborts:
                raise Aborted
    except CommitOutcomeUnknown:
        while not txn.is_over:
            try:
                await txn.commit()
            except CommitOutcomeUnknown:
                continue
    return [await delivery for delivery in deliveries]
