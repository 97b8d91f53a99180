"""The deadlines of a consumer group and of its members. Pure.

They are in no record: all start from the beginning when another broker leads.
"""

from collections.abc import Iterable

from odradek.broker.coordinator.machine import Now
from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.group_values import Key
from odradek.broker.group.group_host import GroupHost, TimerKey, TimerKind


class GroupTimers:
    """Of one group. All times are `Now.monotonic_ms`."""

    __slots__ = ("_assigned_ms", "_group_id", "_heard_ms", "_host", "_state")

    def __init__(self, group_id: str, host: GroupHost, state: GroupState) -> None:
        self._group_id = group_id
        self._host = host
        self._state = state
        self._assigned_ms: int | None = None
        self._heard_ms: dict[str, int] = {}

    def heard(self, member_id: str, now_ms: int) -> None:
        self._heard_ms[member_id] = now_ms
        self._start_session(member_id, now_ms)

    def heard_ms(self, member_id: str) -> int | None:
        """When the member was last heard of; None: not since the group was loaded. Its session may have begun later:
        a load begins it, and what was refused begins it again."""
        return self._heard_ms.get(member_id)

    def _start_session(self, member_id: str, now_ms: int) -> None:
        self._host.timers.set(self._key(TimerKind.SESSION, member_id), now_ms + self._session_ms(member_id))

    def _key(self, kind: TimerKind, member_id: str = "") -> TimerKey:
        return TimerKey(self._group_id, kind, member_id)

    def _session_ms(self, member_id: str) -> int:
        """A classic member has said how long its session is."""
        member = self._state.members.get(member_id)
        if member is not None and member.classic is not None:
            return member.classic.session_timeout_ms
        return self._host.consumer_options(self._group_id).consumer_session_timeout_ms

    def follow(self, member_id: str, now_ms: int) -> None:
        """The member has taken a step: the rebalance time-out runs for as long as it has to give something up.

        It does not for members that speak the classic protocol: they have the time-outs of joins and syncs.
        """
        key = TimerKey(self._group_id, TimerKind.REBALANCE, member_id)
        member = self._state.members[member_id]
        if self._state.current(member_id).revoking and member.classic is None:
            self._host.timers.set(key, now_ms + member.rebalance_timeout_ms)
        else:
            self._host.timers.cancel(key)

    def leave(self, member_id: str) -> None:
        """The member is away, but still in the group: it need not give anything up."""
        self._host.timers.cancel(TimerKey(self._group_id, TimerKind.REBALANCE, member_id))

    def forget(self, member_id: str) -> None:
        self._heard_ms.pop(member_id, None)
        for kind in (TimerKind.SESSION, TimerKind.REBALANCE, TimerKind.JOIN, TimerKind.SYNC):
            self._host.timers.cancel(self._key(kind, member_id))

    def forget_all(self) -> None:
        """The group is one of another kind."""
        for member_id in self._state.members:
            self.forget(member_id)
        self._host.timers.cancel(self._key(TimerKind.ASSIGNMENT))

    # ----------------------------------------------------------------------------- members of the classic protocol
    def expect_join(self, member_id: str, now_ms: int) -> None:
        """The member was told to join again: from the first time on it has its rebalance time-out."""
        key = self._key(TimerKind.JOIN, member_id)
        if key not in self._host.timers:
            self._host.timers.set(key, now_ms + self._state.members[member_id].rebalance_timeout_ms)

    def joined(self, member_id: str, now_ms: int) -> None:
        """The member has joined, and is to sync within its rebalance time-out."""
        self._host.timers.cancel(self._key(TimerKind.JOIN, member_id))
        timeout_ms = self._state.members[member_id].rebalance_timeout_ms
        self._host.timers.set(self._key(TimerKind.SYNC, member_id), now_ms + timeout_ms)

    def synced(self, member_id: str, now_ms: int) -> None:
        self._host.timers.cancel(self._key(TimerKind.SYNC, member_id))
        self.heard(member_id, now_ms)

    def load(self, now: Now) -> None:
        """Sessions start now. When the last assignment was worked out is in its record."""
        target = self._state.target_epoch
        past_ms = now.unix_ms - target.unix_ms if target is not None and target.unix_ms else -1
        self._assigned_ms = now.monotonic_ms - past_ms if past_ms >= 0 else None
        for member_id in self._state.members:
            self._start_session(member_id, now.monotonic_ms)
            self.follow(member_id, now.monotonic_ms)
        self.plan_assignment(now.monotonic_ms)

    def resume(self, keys: Iterable[Key], now_ms: int) -> None:
        """These keys have got back a former value, as of then: what their members lack of deadlines, they get."""
        for member_id in {key.name for key in keys}.intersection(self._state.members):
            if TimerKey(self._group_id, TimerKind.SESSION, member_id) not in self._host.timers:
                self._start_session(member_id, now_ms)
            if TimerKey(self._group_id, TimerKind.REBALANCE, member_id) not in self._host.timers:
                self.follow(member_id, now_ms)
        self.plan_assignment(now_ms)

    # ------------------------------------------------------------------------------------------------ assignments
    def may_assign(self, now_ms: int) -> bool:
        """Whether `group.consumer.assignment.interval.ms` has passed since the last assignment, if there was one."""
        return now_ms >= self._assignment_due_ms(now_ms)

    def assigned(self, now_ms: int) -> None:
        self._assigned_ms = now_ms
        self._host.timers.cancel(TimerKey(self._group_id, TimerKind.ASSIGNMENT))

    def plan_assignment(self, now_ms: int) -> None:
        """As soon as it may be, if one is wanted at all."""
        if self._state.members and self._state.group_epoch > self._state.assignment_epoch:
            due_ms = max(now_ms, self._assignment_due_ms(now_ms))
            self._host.timers.set(TimerKey(self._group_id, TimerKind.ASSIGNMENT), due_ms)

    def _assignment_due_ms(self, now_ms: int) -> int:
        if self._assigned_ms is None or self._state.target_epoch is None:
            return now_ms
        return self._assigned_ms + self._host.consumer_options(self._group_id).consumer_assignment_interval_ms
