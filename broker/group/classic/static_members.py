"""A static member that comes back without its member id, and takes over from the one with its instance id. Pure.

The former id is fenced at once (KIP-345). In a stable group nothing is rebalanced as long as the choice of the protocol
stays: the new id is stored, and the member goes on with its assignment. A leader is told not to assign (KIP-814), or
where its version cannot be told so, that another one leads.
"""

from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.rebalancing import Why, joined, leader_members, prepare_or_complete
from odradek.broker.group.classic.requests import Join, Joined
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.classic.storing import store
from odradek.broker.group.group_host import TimerKind
from odradek.broker.group.rebalance import RebalanceCause, reason_given
from odradek.protocol.errors import ErrorCode, KafkaError


def replace(group: GroupState, request: Join, member_id: str, waiting: Waiting[Joined], now: Now) -> Joined | None:
    """The member with the request's instance id is `member_id` from now on. None: the join is held."""
    assert request.instance_id is not None
    member = group.roster.members[group.roster.static_ids[request.instance_id]]
    former = _Former(group, member)
    reason = reason_given(f"static member {request.instance_id} came back as {member_id}", request.reason)
    why = Why(RebalanceCause.STATIC_MEMBER_REPLACED, reason, member)
    why.member_id = member_id
    _rename(group, member, member_id, now)
    member.last_heard_ms = now.unix_ms
    member.is_new = False
    group.roster.update(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms)
    if group.state is ClassicState.STABLE and group.roster.choose_protocol() == group.protocol_name:
        if former.protocols != request.protocols:
            group.learn_topics()
        store(group, lambda: former.put_back(now))
        return _answer_in_stable(group, member, request, former.leader_id)
    group.roster.hold_join(member, waiting)
    # The leader may have been told the former id already, so that the new one would be assigned nothing.
    prepare_or_complete(group, why, now)
    return None


def _answer_in_stable(group: GroupState, member: Member, request: Join, former_leader_id: str | None) -> Joined:
    if request.supports_skip_assignment:
        is_leader = group.roster.leader_id == member.member_id
        return joined(group, member, leader_members(group, member), skip_assignment=is_leader)
    return joined(group, member)._replace(leader_id=former_leader_id or "")


def _rename(group: GroupState, member: Member, member_id: str, now: Now) -> None:
    text = f"another client has joined with the instance id {member.instance_id}"
    group.answer_held(member, KafkaError(ErrorCode.FENCED_INSTANCE_ID, text))
    group.end_session(member.member_id)
    group.roster.rename(member, member_id, group.key(TimerKind.SESSION, member_id))
    group.keep_alive(member, now)


class _Former:
    """What a static member was before it was replaced, in case that cannot be stored."""

    __slots__ = (
        "_generation",
        "_group",
        "_member",
        "_member_id",
        "_rebalance_timeout_ms",
        "_session_timeout_ms",
        "leader_id",
        "protocols",
    )

    def __init__(self, group: GroupState, member: Member) -> None:
        self.leader_id = group.roster.leader_id
        self.protocols = member.protocols
        self._group = group
        self._member = member
        self._generation = group.generation
        self._member_id = member.member_id
        self._rebalance_timeout_ms = member.rebalance_timeout_ms
        self._session_timeout_ms = member.session_timeout_ms

    def put_back(self, now: Now) -> None:
        """The member has the id again that the log has of it, unless it has left since.

        Its protocols come back only where nobody can have joined by the new ones.
        """
        group, member = self._group, self._member
        assert member.instance_id is not None
        stored_id = self._member_id
        if group.written is not None:
            stored_id = group.written.static_ids.get(member.instance_id, stored_id)
        if group.roster.members.get(member.member_id) is not member or stored_id == member.member_id:
            return
        _rename(group, member, stored_id, now)
        if group.state is ClassicState.STABLE and group.generation == self._generation:
            timeouts = self._rebalance_timeout_ms, self._session_timeout_ms
            group.roster.update(member, self.protocols, *timeouts)
            group.learn_topics()
