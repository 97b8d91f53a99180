"""How and from where to fetch: `FetchSettings` and `Start`. Pure."""

from dataclasses import dataclass
from typing import Literal

from odradek.client.fetching.list_offsets import EARLIEST, LATEST

__all__ = ["FetchSettings", "Start"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """Settings of Kafka's consumer that concern fetching, by its names and with its defaults, and some of our own.

    `buffer_bytes` bounds what is fetched ahead. `retry_timeout_ms`: for so long a partition may fail without a break
    (None: for ever, as Kafka's consumer does). `client_rack`: where the reader stands, so that it may read from a
    replica there (KIP-392). `replica_max_age_ms`: after so long a leader is asked again which replica that is.
    `follows_new_topics`: a topic that was deleted and created again is read from its beginning.
    """

    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 * 1024 * 1024
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1024 * 1024
    check_crcs: bool = True
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    auto_offset_reset: Literal["earliest", "latest", "none"] = "latest"
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    buffer_bytes: int = 64 * 1024 * 1024
    retry_timeout_ms: int | None = 60_000
    client_rack: str = ""
    replica_max_age_ms: int = 300_000
    follows_new_topics: bool = False

    @property
    def read_committed(self) -> bool:
        return self.isolation_level == "read_committed"


@dataclass(frozen=True, slots=True)
class Start:
    """Where reading a partition begins: at an offset, or where ListOffsets finds a timestamp.

    A timestamp later than all records means the end. `leader_epoch`: of the record before the offset, where it is known
    from a commit; a log that was truncated since is noticed by it (KIP-320).
    """

    offset: int | None = None
    timestamp: int = EARLIEST
    leader_epoch: int = -1

    @classmethod
    def earliest(cls) -> "Start":
        return cls()

    @classmethod
    def latest(cls) -> "Start":
        return cls(None, LATEST)

    @classmethod
    def at_offset(cls, offset: int, leader_epoch: int = -1) -> "Start":
        return cls(offset, leader_epoch=leader_epoch)
