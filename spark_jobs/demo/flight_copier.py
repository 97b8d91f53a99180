"""Copies flights exactly once: our own consumer and producer, as a process that can be killed.

    python -m odradek.spark_jobs.demo.flight_copier BOOTSTRAP SOURCE TARGET NAME

NAME is its transactional id, its group, and its instance in the group: whoever starts with it fences the one before,
aborts what that one had open, and goes on behind what it had committed. A copy keeps its key, the carrier: flights of
one carrier stay in one partition, in their order. SIGTERM ends it.
"""

import sys

from odradek import Consumer, Producer
from odradek.spark_jobs.demo.client_process import run_until_told

FLIGHTS_IN_TRANSACTION = 10_000
"""A transaction is shorter only where no more flights come."""
POLL_TIMEOUT_MS = 500.0


async def copy(bootstrap: str, source: str, target: str, name: str) -> None:
    """Until it is cancelled. Raises what the clients raise."""
    consumer = Consumer(
        bootstrap,
        group_id=name,
        group_instance_id=name,  # else the successor of one that was killed waits until that one's session is over
        topics=[source],
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    async with consumer, Producer(bootstrap, transactional_id=name) as producer:
        while True:
            await copy_some(consumer, producer, target)


async def copy_some(consumer: Consumer, producer: Producer, target: str) -> None:
    """Copies some in one transaction, which commits the consumer's offsets, too."""
    async with producer.transaction(consumer=consumer) as txn:
        left = FLIGHTS_IN_TRANSACTION
        while left and (batch := await consumer.get_batch(left, timeout_ms=POLL_TIMEOUT_MS)):
            records = batch.records
            await txn.send_batch(target, [record.value for record in records], [record.key for record in records])
            left -= len(records)


def main(bootstrap: str, source: str, target: str, name: str) -> None:
    run_until_told(copy(bootstrap, source, target, name))


if __name__ == "__main__":
    main(*sys.argv[1:])
