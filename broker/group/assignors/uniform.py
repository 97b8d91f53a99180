"""`uniform`: balanced and sticky. Pure. Rules: Kafka's UniformAssignor."""

from odradek.broker.group.assignors.heterogeneous import assign_heterogeneous
from odradek.broker.group.assignors.homogeneous import assign_homogeneous
from odradek.broker.group.assignors.spec import GroupSpec, Partitions


def assign_uniform(spec: GroupSpec) -> dict[str, Partitions]:
    """Each partition that somebody has subscribed to has one owner, and as few as possible change theirs."""
    subscriptions = {member.topics for member in spec.members.values()}
    if not subscriptions:
        return {}
    return assign_homogeneous(spec) if len(subscriptions) == 1 else assign_heterogeneous(spec)
