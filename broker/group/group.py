"""What the shard's machine asks of a group, of whatever kind. Pure."""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from odradek.broker.coordinator.machine import Now, StoredRecord
from odradek.broker.group.group_host import TimerKey
from odradek.broker.group.offsets import Committed


class GroupKind(Enum):
    """By its name in ListGroups (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(Protocol):
    """One group of a shard."""

    @property
    def group_id(self) -> str: ...
    @property
    def kind(self) -> GroupKind: ...
    @property
    def state_name(self) -> str:
        """As Kafka writes it: `Empty`, `Stable`, …"""
        ...

    @property
    def protocol_type(self) -> str | None:
        """None for a group that only commits offsets."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        ...

    def validate_offset_delete(self) -> None:
        """Raises KafkaError NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        ...

    def validate_delete(self) -> None:
        """Raises KafkaError NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether its offsets in the topic are kept, and not to be deleted."""
        ...

    def retained_since_ms(self, committed: Committed) -> int | None:
        """From when on the retention of an offset counts, by the clock of commit timestamps; None: it does not
        expire now (OffsetExpirationCondition)."""
        ...

    def tombstones(self) -> Sequence[StoredRecord]:
        """What removes the group from the log; none where the log holds nothing of it but offsets."""
        ...

    def timed_out(self, key: TimerKey, now: Now) -> None: ...

    def loaded(self, now: Now) -> None: ...
