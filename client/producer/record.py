"""A record as a caller hands it over, which is what interceptors see: nothing is serialized, no partition chosen."""

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["ProducerRecord", "RecordHeaders"]

RecordHeaders = Iterable[tuple[str, bytes | None]]
"""Names with values, in order; a name may stand more than once."""


class ProducerRecord(NamedTuple):
    """`partition` None: the partitioner chooses. `timestamp_ms` None: the time of acceptance."""

    topic: str
    value: Any
    key: Any = None
    partition: int | None = None
    headers: RecordHeaders = ()
    timestamp_ms: int | None = None
