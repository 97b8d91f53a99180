"""Readers under test: kafka-python's and our own fetch loop, each of all partitions from the beginning. That of
librdkafka is in librdkafka_reader.py."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPythonPartition
from kafka.errors import KafkaError as KafkaPythonError
from kafka.errors import OffsetOutOfRangeError

from odradek.client.cluster.cluster import Cluster
from odradek.client.errors.client_errors import ClientError
from odradek.client.fetching.config import FetchConfig
from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.fetcher import Fetcher, settings_of
from odradek.client.fetching.positions import OffsetOutOfRange
from odradek.client.topic_partition import TopicPartition
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from tests.cluster.client_producers import RECONNECT_MS, REQUEST_TIMEOUT_MS
from tests.cluster.client_session import POLL_S, RETRY_S, Reading, Session, now_ms


def read_with_kafka_python(session: Session) -> None:
    reading, job = Reading(session), session.job
    impatient: dict[str, Any] = {"request_timeout_ms": REQUEST_TIMEOUT_MS, "reconnect_backoff_max_ms": RECONNECT_MS}
    consumer = KafkaConsumer(
        bootstrap_servers=job.bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        **({} if job.is_patient else impatient),
    )
    partitions = {KafkaPythonPartition(job.topic, partition): partition for partition in range(job.partitions)}
    consumer.assign(list(partitions))
    for each in partitions:
        consumer.seek(each, 0)
    while not session.stop.is_set():
        asked_ms = now_ms()
        try:
            polled = consumer.poll(timeout_ms=int(POLL_S * 1000))
        except OffsetOutOfRangeError as error:
            reading.failed(asked_ms, error)
            for each, partition in partitions.items():
                reading.lost(partition)
                consumer.seek(each, 0)
            continue
        except KafkaPythonError as error:
            reading.failed(asked_ms, error)
            session.stop.wait(RETRY_S)
            continue
        for each, records in polled.items():
            reading.polled(asked_ms, each.partition, [(record.offset, record.value) for record in records])
    consumer.close()


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
