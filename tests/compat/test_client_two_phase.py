"""Transactions of two phases by our client: on our broker, which is killed between the phases and after the second one,
and on Apache Kafka in both transaction versions."""

import asyncio
import json
from pathlib import Path

import pytest

from odradek import Admin, NewTopic, OtherOutcome, Producer, ProducerFenced, UnsupportedVersion
from odradek.client.admin.features import FeatureChange
from processes.apache_kafka import ApacheKafka
from tests.compat.kit_cluster import KitCluster
from tests.compat.test_transactions_of_clients import read_by_kafka_python

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.timeout(120)]

SETTINGS = {"transaction.two.phase.commit.enable": "true", "transaction.state.log.num.partitions": "4"}
VALUES = [b"%d" % number for number in range(1_000)]
PARTITIONS = 3


async def prepare(bootstrap: str, note: Path) -> None:
    """A transaction, and what is needed to end it."""
    async with Admin(bootstrap) as admin:
        await admin.create_topics([NewTopic("payments", PARTITIONS, 1)])
    producer = Producer(bootstrap, transactional_id="sink", transaction_two_phase_commit_enable=True)
    async with producer, producer.transaction() as txn:
        await txn.send_batch("payments", VALUES, VALUES)
        note.write_text(json.dumps(await txn.prepare()))


async def end(bootstrap: str, note: Path, *, commit: bool) -> None:
    async with Admin(bootstrap) as admin:
        await admin.end_transaction(*json.loads(note.read_text()), commit=commit)


def committed(broker: KitCluster | ApacheKafka) -> list[bytes]:
    return sorted(read_by_kafka_python(broker.bootstrap, "payments", PARTITIONS, "read_committed"))


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_prepared_is_ended_whatever_is_killed_meanwhile(tmp_path: Path, commit: bool) -> None:
    note = tmp_path / "prepared.json"
    with KitCluster(1, tmp_path / "data", SETTINGS) as broker:
        asyncio.run(prepare(broker.bootstrap, note))
        for _ in range(2):
            broker.kill()
            broker.start()
            assert committed(broker) == []
        for _ in range(2):
            asyncio.run(end(broker.bootstrap, note, commit=commit))
            broker.kill()
            broker.start()
        with pytest.raises(OtherOutcome):
            asyncio.run(end(broker.bootstrap, note, commit=not commit))
        asyncio.run(wait_until_ended(broker.bootstrap))
        assert committed(broker) == (sorted(VALUES) if commit else [])


async def wait_until_ended(bootstrap: str) -> None:
    """Every partition has its marker."""
    async with Admin(bootstrap) as admin, asyncio.timeout(30):
        while not (await admin.describe_transaction("sink")).state.startswith("Complete"):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_apache_kafka_ends_what_was_prepared_as_ours_does(tmp_path: Path, commit: bool, level: int) -> None:
    note = tmp_path / "prepared.json"
    with ApacheKafka(properties=SETTINGS | {"unstable.api.versions.enable": "true"}) as kafka:
        if level == 1:
            asyncio.run(downgrade(kafka.bootstrap))
        asyncio.run(prepare(kafka.bootstrap, note))
        assert committed(kafka) == []
        for _ in range(2):
            asyncio.run(end(kafka.bootstrap, note, commit=commit))
            with pytest.raises(OtherOutcome):
                asyncio.run(end(kafka.bootstrap, note, commit=not commit))
            asyncio.run(wait_until_ended(kafka.bootstrap))
        assert committed(kafka) == (sorted(VALUES) if commit else [])
        asyncio.run(take_over(kafka.bootstrap))
        with pytest.raises(ProducerFenced, match="has gone on without it"):
            asyncio.run(end(kafka.bootstrap, note, commit=commit))


async def downgrade(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.update_features({"transaction.version": 1}, FeatureChange.SAFE_DOWNGRADE)


async def take_over(bootstrap: str) -> None:
    async with Producer(bootstrap, transactional_id="sink", transaction_two_phase_commit_enable=True):
        pass


@pytest.mark.java
@pytest.mark.slow
def test_apache_kafka_without_its_option_is_told_apart(tmp_path: Path) -> None:
    refused = pytest.raises(UnsupportedVersion, match=r"unstable\.api\.versions\.enable=true")
    with ApacheKafka(properties=SETTINGS) as kafka, refused:
        asyncio.run(prepare(kafka.bootstrap, tmp_path / "prepared.json"))
