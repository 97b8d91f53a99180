"""The target assignment of a group: what an assignor is told of it, and which assignor it is. Pure.

Rules: Kafka's TargetAssignmentBuilder, and ConsumerGroup.computePreferredServerAssignor.
"""

from collections import Counter
from collections.abc import Sequence

from odradek.broker.group.assignors.assignors import ASSIGNORS
from odradek.broker.group.assignors.spec import NO_PARTITIONS, GroupSpec, MemberSpec
from odradek.broker.group.consumer.edits import Edits
from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.group_values import Key, Kind, Member, Target, TargetEpoch
from odradek.broker.group.consumer.subscriptions import Subscriptions
from odradek.broker.group.topics_view import TopicsView


def preferred_assignor(state: GroupState, offered: Sequence[str]) -> str:
    """The one that most members ask for; among equals, and where nobody asks, the first that the broker offers.

    A member may ask for one that is not offered any more: it does not count.
    """
    asked = Counter(member.server_assignor for member in state.members.values())
    known = [name for name in offered if name in ASSIGNORS] or list(ASSIGNORS)
    return max(known, key=lambda name: asked[name])


def assign(state: GroupState, subscriptions: Subscriptions, topics: TopicsView, name: str) -> dict[str, Target]:
    """What each member is to have, by the assignor of this name."""
    spec = group_spec(state, subscriptions, topics)
    return {member_id: Target(partitions) for member_id, partitions in ASSIGNORS[name](spec).items()}


def group_spec(state: GroupState, subscriptions: Subscriptions, topics: TopicsView) -> GroupSpec:
    """Members in the order of their ids. Those with the same subscription share one set of topics."""
    counts: dict[bytes, int] = {}
    known: dict[tuple[frozenset[str], str | None], frozenset[bytes]] = {}

    def topic_ids(member: Member) -> frozenset[bytes]:
        key = (member.topic_names, member.topic_regex)
        found = known.get(key)
        if found is None:
            viewed = [topic for name in subscriptions.names_of(member) if (topic := topics.by_name(name)) is not None]
            counts.update((topic.topic_id, topic.partition_count) for topic in viewed)
            found = known[key] = frozenset(topic.topic_id for topic in viewed)
        return found

    members: dict[str, MemberSpec] = {}
    for member_id in sorted(state.members):
        member, target = state.members[member_id], state.targets.get(member_id)
        assigned = target.partitions if target is not None else NO_PARTITIONS
        members[member_id] = MemberSpec(topic_ids(member), assigned, member.instance_id)
    return GroupSpec(members, counts)


def put_targets(targets: dict[str, Target], group_epoch: int, unix_ms: int, edits: Edits) -> None:
    """Those that are other than before, and the epoch that they belong to."""
    for member_id, target in targets.items():
        edits.put(Key(Kind.TARGET, member_id), target)
    edits.put(Key(Kind.TARGET_EPOCH), TargetEpoch(group_epoch, unix_ms))
