"""What becomes of one partition when brokers come and go: in-sync set, eligible leader replicas, leader. Pure.

    AR   the assigned replicas
    ISR  in sync: whatever is below the high watermark is in each of their logs
    ELR  eligible leader replicas (KIP-966): they left an ISR that is smaller than the effective min.insync.replicas
         since. The high watermark stands still while there are any, so their logs, too, hold all that is below it.

So a leader comes from the ISR, and when that is empty from the ELR. Whoever lost data is in neither. When both are
empty nobody leads until somebody who may lose records for it says so: `unclean.leader.election.enable`, or an operator.

That the high watermark stands still for the ELR's sake, and not for the sake of a comparison with
`min.insync.replicas`, is what makes a change of that option harmless: a leader that knows the new value and a
controller that does not cannot disagree about whose log is complete (replica/replicas.py).

Every function takes a state and answers the next one, or the same object when nothing changes. Epochs follow from the
comparison of the two, in `changed`. Sources: PartitionChangeBuilder.java, ReplicationControlManager.java.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from odradek.broker.cluster.keys import NO_LEADER, PartitionState

IsUsable = Callable[[int], bool]
"""Whether a broker may lead: registered, and not about to stop."""


def with_isr(state: PartitionState, isr: Iterable[int], min_insync: int) -> PartitionState:
    """Another in-sync set, which the leader decides. `min_insync` counts up to the number of replicas."""
    wanted = tuple(isr)
    members = tuple(broker for broker in state.replicas if broker in wanted)
    return replace(state, isr=members, elr=eligible(state, members, min_insync))


def without(
    state: PartitionState, broker: int, min_insync: int, *, lost_data: bool = False, lost_all: bool = False
) -> PartitionState:
    """The broker is gone, or stops. If it has lost data it does not become eligible, and stays only where nobody else
    is left; what has lost all of it does not even then, and whoever elects without caring for loss gets another one."""
    if broker not in state.isr and broker not in state.elr:
        return replace(state, leader=NO_LEADER) if state.leader == broker else state
    others = [member for member in (*state.isr, *state.elr) if member != broker]
    if lost_data and not others and not lost_all:
        return replace(state, leader=NO_LEADER) if state.leader == broker else state
    isr = tuple(member for member in state.isr if member != broker)
    elr = eligible(state, isr, min_insync)
    if lost_data or lost_all:
        elr = tuple(member for member in elr if member != broker)
    leader = NO_LEADER if state.leader == broker else state.leader
    last_known_leader = state.last_known_leader
    if not isr and not elr:
        another = next((member for member in state.replicas if member != broker), broker)
        last_known_leader = another if lost_all else broker
    return replace(state, isr=isr, elr=elr, leader=leader, last_known_leader=last_known_leader)


def is_last(state: PartitionState, broker: int) -> bool:
    """Whether nobody but this broker is in sync or eligible."""
    return {broker} == {*state.isr, *state.elr}


def without_directory(state: PartitionState, broker: int, min_insync: int) -> PartitionState:
    """The broker's replica lies in a data directory that cannot be used. Where nobody else is left it keeps its in-sync
    place, for the directory may come back; it leads nothing meanwhile (`may_lead`)."""
    after = without(state, broker, min_insync, lost_data=True)
    if broker not in state.replicas or broker in state.offline:
        return after
    return replace(after, offline=(*state.offline, broker))


def without_given_up(state: PartitionState, broker: int, min_insync: int) -> PartitionState:
    """The broker's log takes nothing any more, and what it has is uncertain: others lead, and it joins no in-sync set
    before a start has looked. Where nobody else is left it goes on as it can."""
    if broker not in state.replicas or not any(member != broker for member in (*state.isr, *state.elr)):
        return state
    return without_directory(state, broker, min_insync)


def with_directory(state: PartitionState, broker: int) -> PartitionState:
    """The broker's replica can be used again, or a new one in its place."""
    if broker not in state.offline:
        return state
    return replace(state, offline=tuple(member for member in state.offline if member != broker))


def may_lead(state: PartitionState, is_usable: IsUsable) -> IsUsable:
    """Which brokers may lead this partition: they may lead anything, and have a replica that can be used."""
    if not state.offline:
        return is_usable
    return lambda broker: broker not in state.offline and is_usable(broker)


def without_unusable(state: PartitionState, is_usable: IsUsable, min_insync: int) -> PartitionState:
    """Those in sync who are not there, or about to stop, leave together: each of them has all that is committed, so if
    too few stay all of them are eligible, however many went between two decisions."""
    isr = tuple(broker for broker in state.isr if is_usable(broker))
    if len(isr) == len(state.isr):
        return state
    leader = state.leader if state.leader in isr else NO_LEADER
    return replace(state, isr=isr, elr=eligible(state, isr, min_insync), leader=leader)


def with_leader(state: PartitionState, is_usable: IsUsable, *, unclean: bool = False) -> PartitionState:
    """A leader, if there can be one: the present one, else the first of the replicas that is in sync, else one that is
    eligible, else with `unclean` any. `NO_LEADER` otherwise."""
    if state.leader in state.isr and is_usable(state.leader):
        return state
    for candidates in (state.isr, state.elr if not state.isr else ()):
        for broker in state.replicas:
            if broker in candidates and is_usable(broker):
                return _led_by(state, broker)
    if unclean and not any(is_usable(broker) for broker in (*state.isr, *state.elr)):
        for broker in (state.last_known_leader, *state.replicas):
            if broker in state.replicas and is_usable(broker):
                return replace(_led_by(state, broker), isr=(broker,), elr=())
    return state if state.leader == NO_LEADER else replace(state, leader=NO_LEADER)


def with_preferred_leader(state: PartitionState, is_usable: IsUsable) -> PartitionState:
    """Led by the first of its replicas, if that is in sync."""
    preferred = state.replicas[0]
    if state.leader == preferred or preferred not in state.isr or not is_usable(preferred):
        return state
    return _led_by(state, preferred)


def _led_by(state: PartitionState, leader: int) -> PartitionState:
    """Somebody who was eligible is the in-sync set then."""
    if leader in state.isr:
        return replace(state, leader=leader)
    return replace(state, leader=leader, isr=(leader,), elr=tuple(broker for broker in state.elr if broker != leader))


def eligible(state: PartitionState, isr: Collection[int], min_insync: int) -> tuple[int, ...]:
    """Who is eligible beside `isr`: nobody, if that is enough; else all others who were in sync or eligible."""
    if len(isr) >= min(min_insync, len(state.replicas)):
        return ()
    return tuple(
        broker for broker in state.replicas if broker not in isr and (broker in state.isr or broker in state.elr)
    )


# -- epochs ------------------------------------------------------------------------------------------------------------


def changed(before: PartitionState, after: PartitionState, *, restarted: bool = False) -> PartitionState:
    """`after` with its epochs, and nothing about who is no replica any more. A change of the leader, and a leader that
    was `restarted`, take a leader epoch; so does a change of the replicas, so that no follower that is none any more is
    taken for one."""
    if after == before and not restarted:
        return before
    if not set(after.offline) <= set(after.replicas):
        after = replace(after, offline=tuple(broker for broker in after.offline if broker in after.replicas))
    takes_epoch = restarted or after.leader != before.leader or after.replicas != before.replicas
    return replace(
        after,
        leader_epoch=before.leader_epoch + takes_epoch,
        partition_epoch=before.partition_epoch + 1,
    )
