"""Which partition of an internal topic a key belongs to: by Java's `String.hashCode`, as Kafka places groups and
transactional ids (`Utils.abs(groupId.hashCode) % partitions`)."""

import sys
from array import array
from functools import lru_cache
from typing import Final

_INT: Final = 1 << 32
_INT_MIN: Final = -(1 << 31)


@lru_cache(maxsize=4096)  # each request of a group asks; 255 characters take 20 us
def java_hash(text: str) -> int:
    """An int32, of the UTF-16 code units: two for a character outside of the basic plane."""
    units = array("H", text.encode("utf-16-le", "surrogatepass"))
    if sys.byteorder == "big":
        units.byteswap()
    value = 0
    for unit in units:
        value = (31 * value + unit) % _INT
    return value - _INT if value >= _INT >> 1 else value


def partition_of(key: str, partition_count: int) -> int:
    """The index of the partition, of so many, that the key's records are in."""
    value = java_hash(key)
    return (0 if value == _INT_MIN else abs(value)) % partition_count
