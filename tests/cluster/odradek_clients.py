"""Our own client under test: an idempotent producer with acks=all, and a fetch loop over all partitions from the
beginning."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from odradek.client.cluster.cluster import Cluster
from odradek.client.errors.client_errors import ClientError, ConnectionFailed
from odradek.client.fetching.config import FetchConfig
from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.fetcher import Fetcher, settings_of
from odradek.client.fetching.positions import OffsetOutOfRange
from odradek.client.producer.producer import Producer
from odradek.client.producer.results.delivery import Delivery
from odradek.client.topic_partition import TopicPartition
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from tests.cluster.client_session import (
    PAUSE_S,
    POLL_S,
    RECONNECT_MS,
    REQUEST_TIMEOUT_MS,
    RETRY_S,
    Reading,
    Sending,
    Session,
    now_ms,
)


def send_with_our_own(session: Session) -> None:
    asyncio.run(_send_with_our_own(session))


async def _send_with_our_own(session: Session) -> None:
    sending, job = Sending(session), session.job
    impatient: dict[str, Any] = {"request_timeout_ms": REQUEST_TIMEOUT_MS, "reconnect_backoff_max_ms": RECONNECT_MS}

    def ended(number: int, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is None:
            ack = delivery.result()
            sending.acknowledged(number, ack.partition, ack.offset)
        else:
            sending.failed(number, error)

    number = 0
    settings: dict[str, Any] = {"linger_ms": 2, "enable_idempotence": True, "acks": -1} | (
        {} if job.is_patient else impatient
    )
    producer = await _connected(lambda: Producer(job.bootstrap, **settings), session)
    try:
        while not session.stop.is_set():
            if not sending.takes_room():
                await asyncio.sleep(PAUSE_S)
                continue
            told = partial(ended, number)
            try:
                await producer.send(
                    job.topic, sending.sent(number), partition=sending.partition(number), on_delivery=told
                )
            except ClientError as error:
                sending.failed(number, error, is_definite=True)
                await asyncio.sleep(PAUSE_S)
            number += 1
            if number % job.burst == 0:
                await asyncio.sleep(PAUSE_S)
    finally:
        await producer.close()


async def _connected(made: Callable[[], Producer], session: Session) -> Producer:
    """A producer that is started: while all clients of a round start, a busy machine does not answer in time."""
    while True:
        producer = made()
        try:
            return await producer.start()
        except ConnectionFailed:
            if session.stop.is_set():
                raise
            await asyncio.sleep(RETRY_S)


def read_with_our_own(session: Session) -> None:
    asyncio.run(_read_with_our_own(session))


async def _read_with_our_own(session: Session) -> None:
    reading = Reading(session)
    while not session.stop.is_set():
        asked_ms = now_ms()
        try:
            async with _fetcher(reading) as fetcher:
                while not session.stop.is_set():
                    asked_ms = now_ms()
                    batch = await fetcher.next(POLL_S * 1000)
                    if batch is not None:
                        records = [(record.offset, record.value) for record in batch.records]
                        reading.polled(asked_ms, batch.partition, records)
        except ClientError as error:
            reading.failed(asked_ms, error)
            if isinstance(error, OffsetOutOfRange):
                reading.lost(error.partition.partition)
            await asyncio.sleep(RETRY_S)


@asynccontextmanager
async def _fetcher(reading: Reading) -> AsyncGenerator[Fetcher]:
    job, environment = reading.job, Environment()
    impatient: dict[str, Any] = {"request_timeout_ms": REQUEST_TIMEOUT_MS, "reconnect_backoff_max_ms": RECONNECT_MS}
    config = FetchConfig(job.bootstrap, **({} if job.is_patient else impatient))
    tasks = Tasks(environment.loop)
    cluster = Cluster(config, environment, tasks)
    try:
        await cluster.start()
        async with Fetcher(cluster, environment, settings_of(config, auto_offset_reset="none")) as fetcher:
            for partition, offset in reading.positions.items():
                fetcher.assign(TopicPartition(job.topic, partition), Start.at_offset(offset))
            yield fetcher
    finally:
        await cluster.close()
        await tasks.close()
