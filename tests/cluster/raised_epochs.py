"""Records that librdkafka has doubled by itself, by what stands in a log.

Where a partition reports a gap in its sequence numbers, librdkafka (2.16.1, `rd_kafka_idemp_drain_epoch_bump`) raises
its epoch for all partitions, and numbers anew what waits in any of them to be sent again. A batch that was written, and
whose answer was an error or was lost, then stands in the log twice: under the epoch before, and under the next one. A
broker cannot tell that from other records. (Our client waits until none of them can be in the log: decision 006.)
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.batches.records import iterate_records
from odradek.testing.sim.checking.finding import Anomaly, Finding, Verdict
from odradek.testing.sim.checking.history import Sent
from odradek.testing.sim.checking.numbered import decoded

CLIENT: Final = "librdkafka"
EXCUSE: Final = "sent anew by librdkafka under its next epoch"


def under_two_epochs(log: bytes) -> set[int]:
    """The values of records that stand in batches of one producer id under different epochs."""
    written: dict[tuple[int, int], set[int]] = {}
    for position, header in iterate_batches(log):
        if header.producer_id < 0 or header.is_control:
            continue
        for record in iterate_records(log[position : position + header.size_bytes]):
            written.setdefault((header.producer_id, decoded(record.value)), set()).add(header.producer_epoch)
    return {value for (_, value), epochs in written.items() if len(epochs) > 1}


def excused(verdict: Verdict, doubled: Collection[int]) -> Verdict:
    """The same, where librdkafka's duplicates of these values are excused, and nobody else's."""

    def judged(finding: Finding) -> Finding:
        is_its = any(
            isinstance(event, Sent) and event.client == CLIENT and event.value in doubled for _, event in finding.events
        )
        return replace(finding, excuse=EXCUSE) if finding.anomaly is Anomaly.DUPLICATE and is_its else finding

    return Verdict(judged(finding) for finding in (*verdict.findings, *verdict.excused))
