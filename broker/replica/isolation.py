"""How far somebody may read (Kafka's FetchIsolation). Pure."""

from enum import Enum

READ_COMMITTED = 1
"""The isolation level, in a request, of readers who stop before the last stable offset."""


class Isolation(Enum):
    """Who reads, and up to where."""

    LOG_END = "replicas: everything"
    HIGH_WATERMARK = "consumers: what is on every in-sync replica"
    TXN_COMMITTED = "consumers with read_committed: what cannot be aborted any more"
