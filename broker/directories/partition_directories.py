"""The names of partitions' directories in a data directory (LocalLog.java, LogManager.java). Pure.

orders-0                       partition 0 of the topic `orders`
orders-0.<32 digits>-delete    a deleted partition on its way out
orders-0.<32 digits>-stray     one that the metadata did not know: kept, and not served
orders-0.<32 digits>-future    Kafka's copy of a partition that moves to another log directory
"""

import re
from typing import Final

DELETE_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"
FUTURE_SUFFIX: Final = "-future"
NAME_BYTES_MAX: Final = 255
DIGITS: Final = 32

KAFKAS_OWN: Final = frozenset({"__cluster_metadata", "__remote_log_metadata", "__share_group_state"})
"""Topics that Kafka keeps for itself. An adopted data directory has them, and they are left where they are."""
KEPT: Final = KAFKAS_OWN | {"__consumer_offsets", "__transaction_state"}
"""What is not put aside where the metadata has no such topic. Earlier releases left the last two where they were at an
adoption, and they are taken over when there are groups, and transactions (handling/coordinator_topics.py)."""

_RENAMED = re.compile(rf".+\.[0-9a-f]{{{DIGITS}}}(-delete|-stray|-future)", re.DOTALL)
_PARTITION = re.compile(r"(.+)-([0-9]+)", re.DOTALL)


def partition_of(name: str) -> tuple[str, int] | None:
    """The topic and the index that a name says; None when it is no partition's. `orders-00` says 0, too, and is a name
    that is never given."""
    found = _PARTITION.fullmatch(name)
    return None if found is None else (found[1], int(found[2]))


def suffix_of(name: str) -> str | None:
    """What a directory was renamed to, if a broker did that: one of the three suffixes."""
    found = _RENAMED.fullmatch(name)
    return None if found is None else found[1]


def renamed(name: str, digits: str, suffix: str) -> str:
    """The name under which a partition's directory is put aside; `digits` are 32, so that no two are the same."""
    return stem_of(name, suffix) + f".{digits}{suffix}"


def stem_of(name: str, suffix: str) -> str:
    """So much of a partition's name stands in the one to which its directory was renamed."""
    return name[: NAME_BYTES_MAX - _ending_bytes(suffix)]


def renamed_stem(name: str, suffix: str) -> str:
    """`stem_of` the partition whose directory was renamed to `name`."""
    return name[: -_ending_bytes(suffix)]


def _ending_bytes(suffix: str) -> int:
    return 1 + DIGITS + len(suffix)
