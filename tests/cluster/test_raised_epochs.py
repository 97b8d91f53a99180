"""Duplicates are excused where librdkafka has sent a record under two epochs, and nowhere else."""

import pytest

from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.testing.sim.checking.finding import Anomaly, Finding, Verdict
from odradek.testing.sim.checking.history import Sent
from odradek.testing.sim.checking.numbered import encoded
from tests.cluster.raised_epochs import EXCUSE, excused, under_two_epochs


def batch(*values: int, producer_id: int = 7, epoch: int = 0) -> bytes:
    records = [Record(delta, 0, None, encoded(value), ()) for delta, value in enumerate(values)]
    return build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=0)


def test_only_what_one_producer_wrote_under_two_epochs_is_found() -> None:
    log = b"".join(
        (
            batch(1, 2),
            batch(3, epoch=1),
            batch(2, epoch=1),
            batch(1),  # twice under one epoch: a broker should have noticed
            batch(3, producer_id=8),
            batch(4, 4, producer_id=-1, epoch=-1),
        )
    )
    assert under_two_epochs(log) == {2}


@pytest.mark.parametrize(
    ("client", "value", "anomaly", "is_excused"),
    [
        ("librdkafka", 2, Anomaly.DUPLICATE, True),
        ("librdkafka", 1, Anomaly.DUPLICATE, False),
        ("kafka-python", 2, Anomaly.DUPLICATE, False),
        ("librdkafka", 2, Anomaly.LOST_WRITE, False),
    ],
)
def test_nothing_else_is_excused(client: str, value: int, anomaly: Anomaly, is_excused: bool) -> None:
    sent = Sent(1.0, client, client, value, "ledger", 0, -1, True, None)
    verdict = excused(Verdict([Finding(anomaly, "ledger", 0, 5, "twice", ((0, sent),))]), {2})
    assert [each.excuse for each in verdict.excused] == ([EXCUSE] if is_excused else [])
    assert verdict.is_content is is_excused
