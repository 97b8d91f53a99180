"""What a member of a group goes by. Times are milliseconds."""

from dataclasses import dataclass

__all__ = ["MembershipSettings"]


@dataclass(frozen=True, slots=True)
class MembershipSettings:
    """Raises ValueError for settings that contradict one another."""

    group_id: str
    group_instance_id: str | None = None
    """Makes the member static (KIP-345): it keeps its partitions when it restarts within its session."""
    rack: str | None = None
    session_timeout_ms: int = 45_000
    """Classic protocol only, as is the next; with KIP-848 the broker decides both."""
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    """Also the time that a rebalance waits for the member, as in Java."""
    request_timeout_ms: int = 30_000
    server_assignor: str | None = None
    """KIP-848 only; None: the broker's default."""

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ValueError("group_id must not be empty")
        if self.group_instance_id == "":
            raise ValueError("group_instance_id must not be empty")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) must be lower than "
                f"session_timeout_ms ({self.session_timeout_ms})"
            )

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None
