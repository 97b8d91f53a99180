"""The records that a client sends in one run: distinct values of mixed sizes, with or without keys, made from a seed.

    value: index int64 | random bytes, as many as make the size wanted
    key:   random bytes, another one for every record, so that no memory of earlier keys helps; or none at all

The process that sends them and the one that reads them back make the same records from the same `ClientLoad`, without
exchanging them. The first `warm_count` of them are sent before the clock runs and are read back with the others.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Self

PARTITION_COUNT = 12
INDEX_BYTES = 8

Pair = tuple[bytes, bytes | None]
"""A value and its key."""


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """`count` records are timed, `warm_count` come before them; sizes are drawn evenly from the least to the most."""

    topic: str
    count: int
    warm_count: int
    value_bytes_min: int
    value_bytes_max: int
    key_bytes: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        assert INDEX_BYTES <= self.value_bytes_min <= self.value_bytes_max

    @property
    def total_count(self) -> int:
        return self.warm_count + self.count

    def records(self) -> list[Pair]:
        """All records, those of the warm-up first. The same list of bytes for every topic."""
        return list(self.iterate())

    def iterate(self) -> Iterator[Pair]:
        """One record after the other, for a sender that is to hold none of them itself."""
        rng = random.Random(self.seed)
        sizes = rng.choices(range(self.value_bytes_min, self.value_bytes_max + 1), k=self.total_count)
        for index, size in enumerate(sizes):
            value = index.to_bytes(INDEX_BYTES, "big") + rng.randbytes(size - INDEX_BYTES)
            yield value, rng.randbytes(self.key_bytes) if self.key_bytes else None

    def split(self) -> tuple[list[Pair], list[Pair]]:
        """The records of the warm-up, and those that are timed."""
        records = self.records()
        return records[: self.warm_count], records[self.warm_count :]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def index_of(value: bytes) -> int:
    """Which record a value is of, if it is one of ours at all."""
    return int.from_bytes(value[:INDEX_BYTES], "big")
