"""Transactions of two phases by our client, on a broker that is killed between the phases, and after the second one."""

import asyncio
import json
from pathlib import Path

import pytest

from odradek import Admin, NewTopic, OtherOutcome, Producer
from processes.odradek_broker import OdradekBroker, settings_words
from tests.compat.test_transactions_of_clients import read_by_kafka_python

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.timeout(120)]

OPTIONS = settings_words({"transaction.two.phase.commit.enable": "true", "transaction.state.log.num.partitions": "4"})
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


def committed(broker: OdradekBroker) -> list[bytes]:
    return sorted(read_by_kafka_python(broker.bootstrap, "payments", PARTITIONS, "read_committed"))


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_prepared_is_ended_whatever_is_killed_meanwhile(tmp_path: Path, commit: bool) -> None:
    note = tmp_path / "prepared.json"
    with OdradekBroker(tmp_path / "data", *OPTIONS) as broker:
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
