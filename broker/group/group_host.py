"""What a group is given of its shard. Pure."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, Protocol

from odradek.broker.coordinator.machine import Outbox
from odradek.broker.coordinator.timers import Timers
from odradek.broker.group.group_counts import NOT_COUNTED, GroupCounts


class TimerKind(Enum):
    """What happens to a group, or to a member of it, when time is up."""

    SESSION = "session"
    """The member has not been heard of."""
    JOIN = "join"
    """Those who have not joined again are left behind, or the first members have waited long enough for others."""
    SYNC = "sync"
    """Members that joined have not asked for their assignment."""
    REBALANCE = "rebalance"
    """The member has not given up what it was told to (KIP-848)."""
    ASSIGNMENT = "assignment"
    """A new target assignment may be worked out (KIP-848)."""


class TimerKey(NamedTuple):
    """Which deadline of a shard."""

    group_id: str
    kind: TimerKind
    member_id: str = ""
    """Empty where the deadline is the group's."""


class GroupOptions(Protocol):
    """The options that groups go by, named as in Kafka, with `_` for `.`; what BrokerConfig has of them at the moment.

    Each group reads them whenever it needs them: they may be changed at run time.
    """

    @property
    def group_min_session_timeout_ms(self) -> int: ...
    @property
    def group_max_session_timeout_ms(self) -> int: ...
    @property
    def group_initial_rebalance_delay_ms(self) -> int: ...
    @property
    def group_max_size(self) -> int: ...
    @property
    def group_consumer_session_timeout_ms(self) -> int: ...
    @property
    def group_consumer_min_session_timeout_ms(self) -> int: ...
    @property
    def group_consumer_max_session_timeout_ms(self) -> int: ...
    @property
    def group_consumer_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_consumer_min_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_consumer_max_heartbeat_interval_ms(self) -> int: ...
    @property
    def group_consumer_assignment_interval_ms(self) -> int: ...
    @property
    def group_consumer_min_assignment_interval_ms(self) -> int: ...
    @property
    def group_consumer_max_assignment_interval_ms(self) -> int: ...
    @property
    def group_consumer_max_size(self) -> int: ...
    @property
    def group_consumer_assignors(self) -> tuple[str, ...]: ...
    @property
    def group_consumer_migration_policy(self) -> str: ...


class ConsumerOptions(Protocol):
    """The options of one consumer group: its own, else the broker's (resource GROUP of DescribeConfigs)."""

    @property
    def consumer_session_timeout_ms(self) -> int: ...
    @property
    def consumer_heartbeat_interval_ms(self) -> int: ...
    @property
    def consumer_assignment_interval_ms(self) -> int: ...


class OfTheBroker(NamedTuple):
    """Those of a group that sets none."""

    consumer_session_timeout_ms: int
    consumer_heartbeat_interval_ms: int
    consumer_assignment_interval_ms: int


class GroupHost(NamedTuple):
    """The same for all groups of a shard."""

    outbox: Outbox
    timers: Timers[TimerKey]
    """On the clock of `Now.monotonic_ms`. The shard tells the group when one is due (`timed_out`)."""
    options: GroupOptions
    random_uuid: Callable[[], bytes]
    """16 bytes; for member ids."""
    counts: GroupCounts = NOT_COUNTED
    """All shards of a broker have one."""
    own_options: Callable[[str], ConsumerOptions] | None = None
    """By group id, as they are now. None: no group sets any."""

    def consumer_options(self, group_id: str) -> ConsumerOptions:
        """What counts for this group now."""
        if self.own_options is not None:
            return self.own_options(group_id)
        options = self.options
        return OfTheBroker(
            options.group_consumer_session_timeout_ms,
            options.group_consumer_heartbeat_interval_ms,
            options.group_consumer_assignment_interval_ms,
        )
