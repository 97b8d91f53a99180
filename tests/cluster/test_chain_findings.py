"""What is missing from a chain or doubled, and who wrote it, by histories and dumps made by hand."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from odradek.testing.sim.checking.numbered import encoded
from tests.cluster.chain_findings import Finding, Written, findings, written


def batch(base_offset: int, producer_id: int, epoch: int) -> Mapping[str, Any]:
    return {"kind": "batch", "base_offset": base_offset, "producer_id": producer_id, "producer_epoch": epoch}


def record(offset: int, value: int) -> Mapping[str, Any]:
    return {"kind": "record", "offset": offset, "value": encoded(value, 3).decode()}


def marker(offset: int, kind: str) -> Mapping[str, Any]:
    return {"kind": "marker", "offset": offset, "type": kind, "coordinator_epoch": 4}


def test_what_is_there_once_is_no_finding() -> None:
    assert findings("third", {1, 2}, Counter({1: 1, 2: 1})) == []


def test_what_is_missing_doubled_or_not_wanted_is_found() -> None:
    found = findings("third", {1, 2, 3}, Counter({1: 2, 3: 1, 9: 1}))
    assert found == [
        Finding("third", 1, 2, True),
        Finding("third", 2, 0, True),
        Finding("third", 9, 1, False),
    ]
    assert str(found[2]) == "9 is in third 1 times, though its source was never told that it is committed"


def test_a_record_is_ended_by_the_next_marker_of_its_producer() -> None:
    lines = [
        batch(0, 7, 1),
        record(0, 100),
        batch(1, 8, 0),
        record(1, 200),
        batch(2, 7, 2),
        marker(2, "ABORT"),
        batch(3, 7, 2),
        record(3, 100),
        batch(4, 7, 2),
        marker(4, "COMMIT"),
    ]
    assert written("third-0", lines) == {
        100: [
            Written("third-0", 0, 7, 1, 0, "ABORT at 2, epoch 2, coordinator epoch 4"),
            Written("third-0", 3, 7, 2, 3, "COMMIT at 4, epoch 2, coordinator epoch 4"),
        ],
        200: [Written("third-0", 1, 8, 0, 1, "no marker")],
    }


def test_who_wrote_it_is_told_by_its_transactional_id() -> None:
    place = Written("third-0", 3, 7, 2, 3, "COMMIT at 4")
    assert place.told({7: "copier"}) == "third-0 offset 3 (batch 3) by copier, producer 7 epoch 2: COMMIT at 4"
    assert "an id of before" in place.told({})
