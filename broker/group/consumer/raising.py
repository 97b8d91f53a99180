"""Why the epoch of a consumer group is raised, in words for operators (broker/group/rebalance.py). Pure.

Who speaks is looked at before the request changes the group. Words are made only where the epoch is raised.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from odradek.broker.coordinator.machine import Now
from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.group_timers import GroupTimers
from odradek.broker.group.consumer.group_values import Member
from odradek.broker.group.consumer.subscriptions import Rematched
from odradek.broker.group.rebalance import Rebalance, RebalanceCause

NAMES_MAX: Final = 10
"""So many topics are named."""


class Speaker(NamedTuple):
    """A member whose request may raise the epoch, as the group knew it before; or no member."""

    member_id: str = ""
    instance_id: str | None = None
    is_known: bool = True
    """It was a member before."""
    replaced_id: str | None = None
    """The member with the same instance id that it takes over from."""
    last_heard_ms: int | None = None
    """Unix time of its last request before, or of that of the replaced one; None: not known."""


NOBODY: Final = Speaker()


def speaker(
    state: GroupState, timers: GroupTimers, member_id: str, now: Now, instance_id: str | None = None
) -> Speaker:
    """`instance_id`: as the request has it; without, the one that the group knows."""
    member = state.members.get(member_id)
    if instance_id is None and member is not None:
        instance_id = member.instance_id
    owner_id = state.static_ids.get(instance_id) if instance_id is not None else None
    replaced_id = owner_id if owner_id != member_id else None
    heard_ms = timers.heard_ms(replaced_id or member_id)
    last_heard_ms = None if heard_ms is None else now.unix_ms - (now.monotonic_ms - heard_ms)
    return Speaker(member_id, instance_id, member is not None, replaced_id, last_heard_ms)


class Why(NamedTuple):
    """What raises the epoch."""

    cause: RebalanceCause
    reason: str
    by: Speaker = NOBODY

    def rebalance(self, epoch: int, now: Now) -> Rebalance:
        """`epoch`: the one that ends."""
        by = self.by
        ids = by.member_id, by.instance_id
        return Rebalance(now.unix_ms, epoch, self.cause, *ids, self.reason, by.last_heard_ms).bounded()


def subscribed(by: Speaker, member: Member) -> Why:
    """The member has come, or reads other topics than before; `member`: as it is now."""
    topics = f"subscribed to {_subscription(member)}"
    if by.replaced_id is not None:
        text = f"static member {by.instance_id} came back as {by.member_id}, {topics}"
        return Why(RebalanceCause.STATIC_MEMBER_REPLACED, text, by)
    if not by.is_known:
        return Why(RebalanceCause.MEMBER_JOINED, f"member {by.member_id} joined, {topics}", by)
    return Why(RebalanceCause.SUBSCRIPTION_CHANGED, f"member {by.member_id} {topics}", by)


def topics_changed(
    changed: Collection[str] | None, subscribed_to: Iterable[str], rematched: Mapping[str, Rematched]
) -> Why:
    """Topics of the group appeared, went, or are others than before. `changed`: the names of all that have changed;
    None where these are not known. `rematched`: expressions that match other topics than before."""
    if rematched:
        return Why(RebalanceCause.REGEX_RESOLVED, "; ".join(_matches(*each) for each in rematched.items()))
    names = None if changed is None else set(subscribed_to).intersection(changed)
    text = f"topics changed: {_listed(names)}" if names else "topics of the group changed"
    return Why(RebalanceCause.TOPICS_CHANGED, text)


def _subscription(member: Member) -> str:
    told = [_listed(member.topic_names)] if member.topic_names else []
    told += [f"the regular expression {member.topic_regex}"] if member.topic_regex else []
    return " and ".join(told) or "nothing"


def _matches(regex: str, rematched: Rematched) -> str:
    told = [f"matches {_listed(rematched.added)} now"] if rematched.added else []
    told += [f"does not match {_listed(rematched.removed)} any more"] if rematched.removed else []
    return f"regular expression {regex} {' and '.join(told)}"


def _listed(names: Collection[str]) -> str:
    """The first ones, and how many more there are."""
    first = sorted(names)[:NAMES_MAX]
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return ", ".join(first) + more
