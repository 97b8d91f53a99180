"""One offset holds one value for ever, and a record stands at one offset.

*Inconsistent offset*: an offset that was acknowledged with acks=all, or returned to a consumer, has a second value.
What was acknowledged with acks=1 alone may be replaced when the leader changes, which is counted apart.

*Duplicate*: an idempotent producer's record at two offsets, or in two partitions. Without idempotence a repeated
request may append again, which is counted apart.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from odradek.testing.sim.checking.expectations import Expectations, TopicPartition
from odradek.testing.sim.checking.finding import Anomaly, Finding
from odradek.testing.sim.checking.ledger import Ledger, Sighting

NOT_IDEMPOTENT: Final = "not idempotent"


def inconsistent_offsets(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    for key, partition in ledger.partitions.items():
        for offset, others in partition.others.items():
            for earlier, later in pairwise([partition.at[offset], *others]):
                yield Finding(
                    Anomaly.INCONSISTENT_OFFSET,
                    *key,
                    offset,
                    f"value {earlier.value} and then value {later.value}",
                    ledger.events(earlier.first_index, earlier.last_index, later.first_index, later.last_index),
                    _excuse_of_two(ledger, expectations, key, earlier, later),
                )


def _excuse_of_two(
    ledger: Ledger, expectations: Expectations, key: TopicPartition, earlier: Sighting, later: Sighting
) -> str | None:
    for weak in (earlier, later):
        if not weak.is_strong and (send := ledger.sends.get(weak.value)) is not None:
            excuse = expectations.of_loss_with_acks_1(key, send.sent.at_ms)
            if excuse is not None:
                return excuse
    return expectations.of_two_values(key, earlier.last_asked_ms, later.first_ms)


def duplicates(ledger: Ledger, expectations: Expectations) -> Iterator[Finding]:
    first_places: dict[int, tuple[TopicPartition, Sighting]] = {}
    for key, partition in ledger.partitions.items():
        for seen in partition.sightings():
            first = first_places.setdefault(seen.value, (key, seen))
            if first[0] != key or first[1].offset != seen.offset:
                yield _duplicate(ledger, expectations, first, (key, seen))


def _duplicate(
    ledger: Ledger,
    expectations: Expectations,
    one: tuple[TopicPartition, Sighting],
    other: tuple[TopicPartition, Sighting],
) -> Finding:
    (key, earlier), (later_key, later) = sorted((one, other), key=lambda each: each[1].first_ms)
    send = ledger.sends.get(later.value)
    excuse = expectations.of_two_values(key, earlier.last_asked_ms, later.first_ms)
    excuse = excuse or expectations.of_made_anew(key, later_key)
    if excuse is None and send is not None and not send.sent.is_idempotent:
        excuse = NOT_IDEMPOTENT
    there = f"{later_key[0]}-{later_key[1]} at offset {later.offset}" if later_key != key else f"offset {later.offset}"
    indexes = [earlier.first_index, later.first_index] + ([] if send is None else [send.index])
    return Finding(
        Anomaly.DUPLICATE,
        *key,
        earlier.offset,
        f"value {later.value} stands here, and at {there} too",
        ledger.events(*indexes),
        excuse,
    )
