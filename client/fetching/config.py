"""`FetchConfig`: how much a fetch waits for and brings."""
# ruff: noqa: RUF009  (the calls make fields of the dataclass, as `dataclasses.field` does)

from dataclasses import dataclass
from typing import ClassVar, Literal

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.configuration.settings import INT_MAX, choice, flag, whole

__all__ = ["FetchConfig"]

IsolationLevel = Literal["read_uncommitted", "read_committed"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FetchConfig(ClientConfig):
    """The settings of the fetch loop; a consumer adds its own."""

    NAME: ClassVar[str] = "fetcher"

    default_api_timeout_ms: int = whole(
        60_000, "How long a call may take, repetitions included.", maximum=INT_MAX, unit="ms"
    )
    receive_buffer_bytes: int = whole(
        65_536, "SO_RCVBUF of the sockets; -1: as the system has it.", minimum=-1, maximum=INT_MAX, unit="bytes"
    )
    fetch_min_bytes: int = whole(1, "A broker answers when it has so many bytes, …", maximum=INT_MAX, unit="bytes")
    fetch_max_wait_ms: int = whole(500, "… or after so long.", maximum=INT_MAX, unit="ms")
    fetch_max_bytes: int = whole(52_428_800, "Most bytes of an answer.", maximum=INT_MAX, unit="bytes")
    max_partition_fetch_bytes: int = whole(
        1_048_576, "Most bytes of a partition in an answer.", maximum=INT_MAX, unit="bytes"
    )
    isolation_level: IsolationLevel = choice(
        "read_uncommitted", IsolationLevel, "Whether records of open and aborted transactions are read."
    )
    check_crcs: bool = flag(True, "Whether checksums are verified.")
