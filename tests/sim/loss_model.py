"""Which losses the cluster has to survive: at no time have two members of one partition's in-sync set lost data before
the first had caught up again.

A replica is *wounded* when its machine loses what was not synced (a power failure), or the disk, or when one of its
data directories fails, while it is one of those that count: the in-sync set and the eligible leader replicas as stored.
It has *caught up* when the stored in-sync set has it again after having been without it. A broker that starts after a
loss takes itself out, so an in-sync set that merely still names it says nothing.

With fewer than two replicas that have to be in sync (`min.insync.replicas`, at most the number of replicas) the first
wound is outside already: what is acknowledged may be on that one replica alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.sim.cluster_history import PartitionStored
from tests.sim.history import FaultKind, Happened

_LOSES_UNSYNCED: Final[FaultKind] = "power failure"
_LOSES_ALL: Final[tuple[FaultKind, ...]] = ("disk lost", "directory fails")

Wound = tuple[float, int]
"""When, in virtual ms, and the broker."""


def wounds_of(happened: Iterable[Happened], broker_ids: Mapping[str, int], *, is_synced: bool) -> list[Wound]:
    """`is_synced`: a power failure takes nothing that was acknowledged."""
    kinds = _LOSES_ALL if is_synced else (*_LOSES_ALL, _LOSES_UNSYNCED)
    return [
        (each.at_ms, broker_id)
        for each in happened
        if each.kind in kinds and (broker_id := broker_id_of(each.machine, broker_ids)) is not None
    ]


def losses_ms(wounds: Iterable[Wound], states: Sequence[PartitionStored], min_insync_replicas: int) -> list[float]:
    """The moments of those wounds of a partition that were outside the model. `states`, in order: without any, every
    wound counts and none heals, and the partition has one replica for each broker that was wounded."""
    found: list[float] = []
    wounds = list(wounds)
    wounded: dict[int, bool] = {}  # broker id -> whether it has left the in-sync set since
    counting = {broker_id for _, broker_id in wounds}
    replica_count = len(counting)
    position = 0
    for at_ms, broker_id in wounds:
        while position < len(states) and states[position].at_ms <= at_ms:
            state = states[position]
            counting = {*state.isr, *state.elr}
            replica_count = len(state.replicas)
            _heal(wounded, state)
            position += 1
        if broker_id not in counting:
            continue
        wounded[broker_id] = False
        survivable = 1 if min(min_insync_replicas, replica_count) >= 2 else 0
        if len(wounded) > survivable:
            found.append(at_ms)
    return found


def is_survivable(
    happened: Iterable[Happened],
    next_one: Happened,
    states: Sequence[PartitionStored],
    min_insync_replicas: int,
    broker_ids: Mapping[str, int],
    *,
    is_synced: bool,
) -> bool:
    """Whether the partition stays within the model if this happens now, too."""
    before = wounds_of(happened, broker_ids, is_synced=is_synced)
    after = before + wounds_of([next_one], broker_ids, is_synced=is_synced)
    return len(losses_ms(after, states, min_insync_replicas)) == len(losses_ms(before, states, min_insync_replicas))


def broker_id_of(machine: str, broker_ids: Mapping[str, int]) -> int | None:
    """None for a machine that runs no broker: a client's, the store's."""
    if broker_ids:
        return broker_ids.get(machine)
    number = re.search(r"\d+$", machine)
    return int(number[0]) if number is not None else None


def _heal(wounded: dict[int, bool], state: PartitionStored) -> None:
    for broker_id, has_left in list(wounded.items()):
        if broker_id in state.isr:
            if has_left:
                del wounded[broker_id]
        elif broker_id not in state.elr:
            wounded[broker_id] = True
