"""`AdminConfig`: what a client that administers adds to every client's settings."""

from dataclasses import dataclass
from typing import ClassVar

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.configuration.settings import INT_MAX, flag, whole

__all__ = ["AdminConfig"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AdminConfig(ClientConfig):
    """The settings of an admin client."""

    NAME: ClassVar[str] = "adminclient"

    default_api_timeout_ms: int = whole(
        60_000, "How long a call may take, repetitions included.", maximum=INT_MAX, unit="ms"
    )
    connections_max_idle_ms: int = whole(
        300_000, "A connection unused for so long is closed; -1: never.", minimum=-1, unit="ms"
    )
    receive_buffer_bytes: int = whole(
        65_536, "SO_RCVBUF of the sockets; -1: as the system has it.", minimum=-1, maximum=INT_MAX, unit="bytes"
    )
    allow_auto_create_topics: bool = flag(False, "Whether asking for an unknown topic may create it.")
