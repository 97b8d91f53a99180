"""`cooperative-sticky`: evenly, with the fewest moves, and to nobody before the former owner has let go (KIP-429).

A partition that moves is withheld: the assignment takes it from its owner and gives it to nobody. The owner gives it up
and joins again, and that rebalance gives it to its new owner. Also good for the eager protocol, where nobody owns
anything when the assignment is made. (Source: CooperativeStickyAssignor.java.)
"""

from collections.abc import Collection, Mapping, Sequence

from odradek.client.consumer.assignment.assignor import NO_GENERATION, Member, RebalanceProtocol, TopicLayout
from odradek.client.consumer.assignment.claims import Claim, Claims, weigh
from odradek.client.consumer.assignment.sticky_assignor import divide
from odradek.client.consumer.assignment.user_data import decode_generation
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.assignor_user_data import encode_cooperative_user_data

__all__ = ["CooperativeStickyAssignor", "without_moves"]


def without_moves(
    assignment: Mapping[str, Sequence[TopicPartition]], claims: Claims
) -> dict[str, list[TopicPartition]]:
    """Leaves out what a member would get while another one claims it.

    An owner whose claim counts keeps its partition, whatever members say that missed a rebalance. Where no claim
    counts, since two members claim the same, both have to let go first.
    """

    def may_have(member_id: str, partition: TopicPartition) -> bool:
        others = claims.claimants.get(partition, set()) - {member_id}
        return not others or claims.owners.get(partition) == member_id

    return {
        member_id: [partition for partition in partitions if may_have(member_id, partition)]
        for member_id, partitions in assignment.items()
    }


class CooperativeStickyAssignor:
    """Its user data is the generation of what the member owns, for leaders that know no subscription version 2."""

    name: str = "cooperative-sticky"
    protocols: frozenset[RebalanceProtocol] = frozenset((RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER))

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: Collection[str]) -> bytes | None:
        return encode_cooperative_user_data(self._generation)

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._generation = generation

    def assign(self, members: Sequence[Member], topics: Mapping[str, TopicLayout]) -> dict[str, list[TopicPartition]]:
        claims = weigh(members, {member.member_id: _claim(member) for member in members}, topics)
        return without_moves(divide(members, topics, claims), claims)


def _claim(member: Member) -> Claim:
    if member.generation >= 0:
        return Claim(member.owned, member.generation)
    return Claim(member.owned, decode_generation(member.user_data))
