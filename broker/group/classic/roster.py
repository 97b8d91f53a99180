"""Who is in a classic group, who is expected, and who leads (the maps of Kafka's ClassicGroup). Pure.

    members         have joined at least once
    pending_joins   were given a member id and are expected to join with it (KIP-394)
    pending_syncs   were told the generation and are expected to ask for their assignment
    static_ids      member id by instance id (KIP-345)

All are in the order in which members came. There is a leader wherever there are members.
"""

from odradek.broker.coordinator.machine import Waiting
from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.protocol_vote import ProtocolSupport, chosen_protocol
from odradek.broker.group.classic.requests import Joined, OfferedProtocol
from odradek.broker.group.group_host import TimerKey
from odradek.protocol.errors import ErrorCode, KafkaError


class Roster:
    """The members of one group. `pending_joins` and `pending_syncs` are dicts only for their order."""

    __slots__ = ("_support", "held_join_count", "leader_id", "members", "pending_joins", "pending_syncs", "static_ids")

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.pending_joins: dict[str, None] = {}
        self.pending_syncs: dict[str, None] = {}
        self.static_ids: dict[str, str] = {}
        self.leader_id: str | None = None
        self.held_join_count = 0
        self._support = ProtocolSupport()

    # -- who comes and goes -----------------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """A new member; the first one leads."""
        assert member.member_id not in self.members, member.member_id
        if member.instance_id is not None:
            assert member.instance_id not in self.static_ids, member.instance_id
            self.static_ids[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self._support.add(member.protocols)
        self.pending_joins.pop(member.member_id, None)
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member_id: str) -> None:
        """A member, or one that is expected. Nobody waits for it any more; its held requests have been answered."""
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        assert member.held_join is None, "whose join is held must be answered first"
        assert member.held_sync is None, "whose sync is held must be answered first"
        self._support.remove(member.protocols)
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str, session_key: TimerKey) -> None:
        """A static member goes on under another member id, in everything, and in its place."""
        former_id = member.member_id
        assert member.instance_id is not None, "a dynamic member keeps its id"
        assert member_id not in self.members, member_id
        member.member_id, member.session_key = member_id, session_key
        self.members = {each.member_id: each for each in self.members.values()}
        self.static_ids[member.instance_id] = member_id
        if former_id in self.pending_syncs:
            del self.pending_syncs[former_id]
            self.pending_syncs[member_id] = None
        if self.leader_id == former_id:
            self.leader_id = member_id

    def update(
        self,
        member: Member,
        protocols: tuple[OfferedProtocol, ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """A member has joined again, and says this of itself now."""
        self._support.remove(member.protocols)
        member.protocols = protocols
        self._support.add(protocols)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    # -- who waits --------------------------------------------------------------------------------------------------

    def hold_join(self, member: Member, waiting: Waiting[Joined]) -> None:
        """Until all have joined. One that is held already has to be taken first."""
        assert member.held_join is None, member.member_id
        member.held_join = waiting
        self.held_join_count += 1

    def take_join(self, member: Member) -> Waiting[Joined] | None:
        """Who waits for the member's join, and is answered now; None: nobody."""
        waiting = member.held_join
        if waiting is not None:
            member.held_join = None
            self.held_join_count -= 1
        return waiting

    @property
    def has_all_joined(self) -> bool:
        return self.held_join_count == len(self.members) and not self.pending_joins

    @property
    def not_joined(self) -> list[Member]:
        """The members that have not joined again."""
        return [member for member in self.members.values() if member.held_join is None]

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member may take to join again; at least 1, or a timer could be due again at once."""
        return max(1, max((member.rebalance_timeout_ms for member in self.members.values()), default=1))

    def elect_joined_leader(self) -> bool:
        """A leader that has not joined again hands over to the first member that has. False: no member has."""
        leader = self.members.get(self.leader_id) if self.leader_id is not None else None
        if leader is None:
            return False
        if leader.held_join is None:
            joined = next((member for member in self.members.values() if member.held_join is not None), None)
            if joined is None:
                return False
            self.leader_id = joined.member_id
        return True

    # -- what is looked up ------------------------------------------------------------------------------------------

    def known(self, member_id: str, instance_id: str | None) -> Member:
        """The member that speaks.

        Raises KafkaError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID where another one has taken over its instance id.
        """
        if instance_id is not None:
            owner_id = self.static_ids.get(instance_id)
            if owner_id is not None and owner_id != member_id:
                text = f"the instance id {instance_id} belongs to member {owner_id} now, not to {member_id}"
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, text)
            if owner_id is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"the group has no static member {instance_id}")
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"the group has no member {member_id!r}")
        return member

    def supports(self, protocols: tuple[OfferedProtocol, ...]) -> bool:
        """Whether all members offer one of these."""
        return self._support.has_any_of(protocols, len(self.members))

    def choose_protocol(self) -> str:
        """By the members' votes; there are members."""
        offers = (member.protocols for member in self.members.values())
        return chosen_protocol(offers, self._support.common(len(self.members)))
