"""A copier of an exactly-once chain: our own consumer and producer."""

import asyncio

from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.records import ConsumerBatch
from odradek.client.errors.client_errors import ClientError
from odradek.client.errors.transaction_errors import CommitOutcomeUnknown, TransactionFailed
from odradek.client.producer.producer import Producer
from odradek.client.producer.transaction import Transaction
from tests.cluster.client_session import POLL_S, RECONNECT_MS, REQUEST_TIMEOUT_MS, Session
from tests.cluster.copying import PAUSE_S, RECORDS_MAX, TRANSACTION_TIMEOUT_MS, Aborted, Copying
from tests.cluster.membership import HEARTBEAT_MS, MAX_POLL_INTERVAL_MS, SESSION_TIMEOUT_MS

MAX_BLOCK_MS = 8_000
"""Less than some faults last: the outcome of commits is unknown then, and asked for again."""


def copy_with_our_own(session: Session) -> None:
    asyncio.run(_copy(Copying(session)))


async def _copy(copying: Copying) -> None:
    while not copying.is_over:
        try:
            async with _producer(copying) as producer, _consumer(copying) as consumer:
                while not copying.is_over:
                    await _copy_some(copying, producer, consumer)
        except ClientError:
            copying.failed()
            await asyncio.sleep(PAUSE_S)


async def _copy_some(copying: Copying, producer: Producer, consumer: Consumer) -> None:
    """Raises ClientError where these clients cannot go on."""
    batch = await consumer.get_batch(RECORDS_MAX, timeout_ms=POLL_S * 1000)
    if not batch:
        return
    try:
        await _transaction(copying, producer, consumer, batch)
    except Aborted:
        await _go_back(consumer)
    except TransactionFailed as error:
        if error.fatal:
            raise
        copying.note(f"{error!r}")
        await _go_back(consumer)
    await asyncio.sleep(PAUSE_S)


async def _transaction(copying: Copying, producer: Producer, consumer: Consumer, batch: ConsumerBatch) -> None:
    txn = producer.transaction()
    try:
        async with txn:
            for record in batch.records:
                partition = copying.target_partition(record.value)
                await txn.send(copying.job.target, record.value, partition=partition)
            await txn.send_offsets(consumer)
            if copying.aborts():
                raise Aborted
    except CommitOutcomeUnknown as error:
        copying.note(f"{error!r}")
        await _commit(txn)


async def _commit(txn: Transaction) -> None:
    """Until its outcome is known."""
    while True:
        try:
            await txn.commit()
        except CommitOutcomeUnknown:
            continue
        return


async def _go_back(consumer: Consumer) -> None:
    """To what the group has committed. Where the group changes meanwhile, partitions begin there by themselves, and
    what was committed may be old."""
    while True:
        generation, partitions = consumer.group_metadata(), consumer.assignment()
        committed = await consumer.committed(partitions)
        if (consumer.group_metadata(), consumer.assignment()) == (generation, partitions):
            break
    for partition in partitions:
        found = committed.get(partition)
        consumer.seek(partition, 0 if found is None else found.offset)


def _producer(copying: Copying) -> Producer:
    job = copying.job
    return Producer(
        job.bootstrap,
        client_id=job.name,
        transactional_id=job.transactional_id,
        transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        max_block_ms=MAX_BLOCK_MS,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        reconnect_backoff_max_ms=RECONNECT_MS,
    )


def _consumer(copying: Copying) -> Consumer:
    job = copying.job
    return Consumer(
        job.bootstrap,
        client_id=job.name,
        group_id=job.group,
        topics=[job.topic],
        partition_assignment_strategy="range",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        reconnect_backoff_max_ms=RECONNECT_MS,
    )
