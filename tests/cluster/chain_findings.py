"""What is missing from an exactly-once chain, doubled, or torn, and which transactions have written it.

    found = findings("third", wanted={1, 2, 3}, counts=Counter({1: 2, 3: 1}))
    print(explained(found, broker.data_dir, {"first": 7, "second": 11, "third": 31}, {4: "copier-1"}))

What is told of a record is what `odradek dump --records` says of its batch, and of the marker that has ended its
transaction, in all topics of the chain: its producer's id and epoch, its offset, COMMIT or ABORT.
"""

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from odradek.testing.sim.checking.numbered import decoded

SHOWN_MAX: Final = 12
NOBODY: Final = -1


class Finding(NamedTuple):
    """A number that is not in a topic once."""

    topic: str
    value: int
    times: int
    is_wanted: bool

    def __str__(self) -> str:
        wanted = "" if self.is_wanted else ", though its source was never told that it is committed"
        return f"{self.value} is in {self.topic} {self.times} times{wanted}"


class Written(NamedTuple):
    """A record in a log, and the transaction that has written it."""

    partition: str
    offset: int
    producer_id: int
    producer_epoch: int
    first_offset: int
    """Of its batch."""
    end: str = "no marker"

    def told(self, ids: Mapping[int, str]) -> str:
        who = ids.get(self.producer_id, "an id of before")
        return (
            f"{self.partition} offset {self.offset} (batch {self.first_offset}) by {who}, producer {self.producer_id} "
            f"epoch {self.producer_epoch}: {self.end}"
        )


def findings(topic: str, wanted: Collection[int], counts: Mapping[int, int]) -> list[Finding]:
    """`counts`: how often each number was read. In the order of the numbers."""
    values = sorted({*wanted, *counts})
    is_wanted = frozenset(wanted)
    return [
        Finding(topic, value, counts.get(value, 0), value in is_wanted)
        for value in values
        if counts.get(value, 0) != 1 or value not in is_wanted
    ]


def written(partition: str, lines: Iterable[Mapping[str, Any]]) -> dict[int, list[Written]]:
    """By number, where and by whom it was written to this partition. `lines`: of `odradek dump --records --json`."""
    found: dict[int, list[Written]] = {}
    batch: Mapping[str, Any] = {}
    open_ones: dict[int, list[tuple[int, Written]]] = {}
    for line in lines:
        producer_id, epoch = batch.get("producer_id", NOBODY), batch.get("producer_epoch", NOBODY)
        match line["kind"]:
            case "batch":
                batch = line
            case "record":
                place = Written(partition, line["offset"], producer_id, epoch, batch["base_offset"])
                open_ones.setdefault(producer_id, []).append((decoded(line["value"].encode()), place))
            case "marker":
                end = (
                    f"{line['type']} at {line['offset']}, epoch {epoch}, coordinator epoch {line['coordinator_epoch']}"
                )
                for value, place in open_ones.pop(producer_id, []):
                    found.setdefault(value, []).append(place._replace(end=end))
            case _:
                pass
    for left in open_ones.values():
        for value, place in left:
            found.setdefault(value, []).append(place)
    return found


def explained(found: Sequence[Finding], data_dir: Path, topics: Mapping[str, int], ids: Mapping[int, str]) -> str:
    """Each finding with all that was written of its number, by a data directory that no broker uses. `topics`: how many
    partitions each has; `ids`: transactional ids by producer id."""
    places: dict[int, list[Written]] = {}
    directories = [data_dir / f"{topic}-{index}" for topic, partitions in topics.items() for index in range(partitions)]
    for partition, lines in _dumped(directories).items():
        for value, each in written(partition, lines).items():
            places.setdefault(value, []).extend(each)
    shown = [
        "\n  ".join([str(each), *(place.told(ids) for place in places.get(each.value, ()))])
        for each in found[:SHOWN_MAX]
    ]
    return "\n".join([f"{len(found)} numbers are not where they belong once:", *shown, ""])


def _dumped(directories: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
    """By partition, the lines of its segments."""
    paths = [str(path) for directory in directories for path in sorted(directory.glob("*.log"))]
    command = [sys.executable, "-m", "odradek", "dump", "--records", "--json", *paths]
    found: dict[str, list[dict[str, Any]]] = {}
    for line in map(
        json.loads, subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    ):
        found.setdefault(Path(line["file"]).parent.name, []).append(line)
    return found
