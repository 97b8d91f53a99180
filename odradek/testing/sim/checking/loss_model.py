"""Which losses the cluster has to survive: at no time have two members of one partition's in-sync set lost data before
the first had caught up again.

A replica is *wounded* when its machine loses what was not synced (a power failure), or the disk, or when one of its
data directories fails, while it is one of those that count: the in-sync set and the eligible leader replicas as stored.
It has *caught up* when the stored in-sync set has it again after having been without it. A broker that starts after a
loss takes itself out, so an in-sync set that merely still names it says nothing.

With fewer than two replicas that have to be in sync (`min.insync.replicas`, at most the number of replicas) the first
wound is outside already: what is acknowledged may be on that one replica alone. If operators lower either, that is so
from then on; if they raise it again, until two have been in sync since.

What operators remove is no loss of the others: a replica that is none any more counts no more. A broker that they have
forgotten (`unregistered`) is wounded where it counted, for it does so no more, whatever its disk holds. A machine whose
broker has ended cleanly, on a disk that had not failed meanwhile, loses nothing with its power.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from odradek.testing.sim.checking.cluster_history import PartitionStored
from odradek.testing.sim.checking.history import FaultKind, Happened

_LOSES_UNSYNCED: Final[FaultKind] = "power failure"
_LOSES_ALL: Final[tuple[FaultKind, ...]] = ("disk lost", "directory fails", "unregistered")
_FAILS: Final[tuple[FaultKind, ...]] = ("disk fault", "directory fails")

Wound = tuple[float, int]
"""When, in virtual ms, and the broker."""


Minimum = tuple[float, int]
"""From when on, in virtual ms, `min.insync.replicas` is what."""


def wounds_of(happened: Iterable[Happened], broker_ids: Mapping[str, int], *, is_synced: bool) -> list[Wound]:
    """`is_synced`: a power failure takes nothing that was acknowledged."""
    found: list[Wound] = []
    lives = _Lives()
    for each in happened:
        is_settled = lives.has_ended_cleanly(each.machine)
        lives.take(each)
        loses = each.kind in _LOSES_ALL or (each.kind == _LOSES_UNSYNCED and not is_synced and not is_settled)
        if loses and (broker_id := broker_id_of(each.machine, broker_ids)) is not None:
            found.append((each.at_ms, broker_id))
    return found


class _Lives:
    """Which machines' brokers have ended as they were asked to, with everything on the device."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._failed: set[str] = set()
        self._ended: set[str] = set()

    def has_ended_cleanly(self, machine: str) -> bool:
        return machine in self._ended

    def take(self, happened: Happened) -> None:
        machine, kind = happened.machine, happened.kind
        if kind == "clean stop":
            self._asked.add(machine)
        elif kind in _FAILS:
            self._failed.add(machine)
        elif kind == "exit":
            if machine in self._asked and machine not in self._failed and not happened.detail:
                self._ended.add(machine)
            self._asked.discard(machine)
        elif kind in ("process crash", _LOSES_UNSYNCED):
            self._asked.discard(machine)
        elif kind == "start":
            self._ended.discard(machine)


def losses_ms(
    wounds: Iterable[Wound], states: Sequence[PartitionStored], minimum: int, changes: Sequence[Minimum] = ()
) -> list[float]:
    """The moments of those wounds of a partition that were outside the model. `states`, in order: without any, every
    wound counts and none heals, and the partition has one replica for each broker that was wounded. `minimum`: of
    `min.insync.replicas`, until it `changes`."""
    found: list[float] = []
    wounds = list(wounds)
    wounded: dict[int, bool] = {}  # broker id -> whether it has left the in-sync set since
    steps: list[tuple[float, int, PartitionStored | int]] = sorted(
        [(state.at_ms, 0, state) for state in states] + [(at_ms, 1, value) for at_ms, value in changes],
        key=lambda step: step[:2],
    )
    doubled = _Doubled(minimum, len({broker_id for _, broker_id in wounds}))
    counting = {broker_id for _, broker_id in wounds}
    position = 0
    for at_ms, broker_id in wounds:
        while position < len(steps) and steps[position][0] <= at_ms:
            step = steps[position][2]
            if isinstance(step, int):
                doubled.changed(step)
            else:
                counting = {*step.isr, *step.elr}
                doubled.stored(step)
                _heal(wounded, step)
            position += 1
        if broker_id not in counting:
            continue
        wounded[broker_id] = False
        if len(wounded) > doubled.survivable:
            found.append(at_ms)
    return found


class _Doubled:
    """Whether all that is acknowledged is on two replicas."""

    def __init__(self, minimum: int, replica_count: int) -> None:
        self._minimum = minimum
        self._replica_count = replica_count
        self._is_first = True
        self._is_doubled = min(minimum, replica_count) >= 2

    @property
    def survivable(self) -> int:
        """How many replicas may be wounded at once."""
        return 1 if self._is_doubled else 0

    def changed(self, minimum: int) -> None:
        self._minimum = minimum
        self._is_doubled &= min(minimum, self._replica_count) >= 2

    def stored(self, state: PartitionStored) -> None:
        """The first state is that of a new partition: nothing was acknowledged before it."""
        self._replica_count = len(state.replicas)
        is_enough = min(self._minimum, self._replica_count) >= 2
        self._is_doubled = is_enough and (self._is_doubled or self._is_first or len(state.isr) >= 2)
        self._is_first = False


def is_survivable(
    happened: Iterable[Happened],
    next_one: Happened,
    states: Sequence[PartitionStored],
    minimum: int,
    broker_ids: Mapping[str, int],
    *,
    is_synced: bool,
    changes: Sequence[Minimum] = (),
) -> bool:
    """Whether the partition stays within the model if this happens now, too."""
    happened = list(happened)
    before = wounds_of(happened, broker_ids, is_synced=is_synced)
    after = wounds_of([*happened, next_one], broker_ids, is_synced=is_synced)
    return len(losses_ms(after, states, minimum, changes)) == len(losses_ms(before, states, minimum, changes))


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
