"""What goes wrong in a world, and when: by chance, or as a list of timed actions.

    plan = Faults(world, brokers, clients).by_chance(rng, from_s=3, to_s=18, count=8)
    for at_s, action in plan: world.at(at_s, action)

A fault comes with its repair, at a moment of its own. `heal` repairs all at once. What an action does goes to the
history (`Happened`) with all that a model of loss has to know. Where data may be lost `may_lose` is asked first: if it
says no, the process dies and the machine keeps what it has. So a history can keep to the loss model.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from odradek.broker.cluster.keys import broker_key
from odradek.testing.sim.checking.cluster_history import PartitionStored
from odradek.testing.sim.checking.expectations import TopicPartition
from odradek.testing.sim.checking.history import FaultKind
from odradek.testing.sim.checking.topics import name_of
from odradek.testing.sim.cluster.brokers import DATA_DIRS, Brokers
from odradek.testing.sim.cluster.older_store import OlderStore
from odradek.testing.sim.cluster.operators import Operators
from odradek.testing.sim.cluster.transactors import Transactors
from odradek.testing.sim.cluster.workload import Workload
from odradek.testing.sim.world.losing_disk import Fate
from odradek.testing.sim.world.machine import Machine
from odradek.testing.sim.world.store import HOST as STORE_HOST
from odradek.testing.sim.world.world import World

Action = tuple[float, Callable[[], object]]
"""So many seconds after the world began, what to do."""

MayLose = Callable[[Machine, FaultKind], bool]
"""Whether this may happen to the machine now: a power failure, or the loss of a disk."""

FATES: Final = (0.0, 0.3, 0.5, 0.7, 1.0)
"""What part of all that was not synced is left when power fails; 1.0: all of it."""


class Faults:
    """See the module."""

    def __init__(
        self,
        world: World,
        brokers: Brokers,
        clients: Sequence[Machine],
        workload: Workload,
        operators: Operators,
        partitions: Mapping[TopicPartition, PartitionStored],
        may_lose: MayLose,
        transactors: Transactors,
    ) -> None:
        """`partitions`: as stored at any moment."""
        self.transactors = transactors
        self.world = world
        self.brokers = brokers
        self.clients = clients
        self.workload = workload
        self.operators = operators
        self.partitions = partitions
        self.older_store = OlderStore(world, brokers)
        self._may_lose = may_lose
        self.is_over = False
        """No fault comes any more, and repairs that were planned are left out: `heal` has been called."""
        self._doubtful: dict[Machine, None] = {}  # whose disk has failed
        self._outcomes = world.rng("outcomes")

    def may_lose(self, machine: Machine, kind: FaultKind) -> bool:
        """While the store is set back no broker forgets what it knows of the newest one."""
        return not self.older_store.is_in_place and self._may_lose(machine, kind)

    # -- plans -----------------------------------------------------------------------------------------------------

    def by_chance(self, rng: random.Random, from_s: float, to_s: float, count: int) -> list[Action]:
        """So many faults, each with its repair."""
        kinds = self._kinds()
        plan: list[Action] = []
        for _ in range(count):
            kind = rng.choices([each for each, _ in kinds], [weight for _, weight in kinds])[0]
            at_s = rng.uniform(from_s, to_s)
            machine = rng.choice(self.brokers.machines)
            plan += [(at_s + delay_s, action) for delay_s, action in kind(rng, machine)]
        return sorted(plan, key=lambda action: action[0])

    def carry_out(self, plan: Iterable[Action]) -> None:
        for at_s, action in plan:
            self.world.at(at_s, self._act, action)

    def _act(self, action: Callable[[], object]) -> None:
        if not self.is_over:
            action()

    def _kinds(self) -> list[tuple[Callable[[random.Random, Machine], list[Action]], int]]:
        kinds: list[tuple[Callable[[random.Random, Machine], list[Action]], int]] = [
            (self._crash, 6),
            (self._crash_in_disk_call, 6),
            (self._restart, 3),
            (self._pause, 4),
            (self._suspend, 1),
            (self._jump, 1),
            (self._slow, 2),
            (self._rush, 3),
            (self._slow_disk, 3),
            (self._failing_disk, 2),
            (self._full_disk, 1),
            (self._cut, 5),
            (self._bad_line, 3),
            (self._resets, 3),
            (self._power, 6),
            (self._power_in_disk_call, 6),
        ]
        if self.world.store is not None:
            kinds += [
                (self._store_trouble, 4),
                (self._store_away, 2),
                (self._lapse, 2),
                (self._reassign, 3),
                (self._prefer, 2),
                (self._compact, 1),
                (self._older_store, 2),
                (self._lost_disk, 1),
                (self._dead_directory, 3),
                (self._lost_directory, 2),
            ]
        return kinds

    # -- processes and machines ------------------------------------------------------------------------------------

    def _crash(self, rng: random.Random, machine: Machine) -> list[Action]:
        return [(0.0, partial(self.crash, machine, _soon(rng)))]

    def _crash_in_disk_call(self, rng: random.Random, machine: Machine) -> list[Action]:
        return [(0.0, partial(machine.disk_faults.arm, rng.randrange(60), partial(self.crash, machine, _soon(rng))))]

    def _power(self, rng: random.Random, machine: Machine) -> list[Action]:
        return [(0.0, partial(self.power_off, machine, _soon(rng)))]

    def _power_in_disk_call(self, rng: random.Random, machine: Machine) -> list[Action]:
        return [
            (0.0, partial(machine.disk_faults.arm, rng.randrange(60), partial(self.power_off, machine, _soon(rng))))
        ]

    def _lost_disk(self, rng: random.Random, machine: Machine) -> list[Action]:
        return [(0.0, partial(self.lose_disk, machine)), (_soon(rng), partial(self.brokers.start, machine))]

    def _restart(self, rng: random.Random, machine: Machine) -> list[Action]:
        del rng
        return [(0.0, partial(self.stop, machine))]

    def _pause(self, rng: random.Random, machine: Machine) -> list[Action]:
        target = rng.choice(self.clients) if self.clients and rng.random() < 0.2 else machine
        return [
            (0.0, partial(self.pause, target)),
            (rng.choice((0.05, 0.5, 2.0, 4.0)) * (0.5 + rng.random()), partial(self.resume, target)),
        ]

    def _suspend(self, rng: random.Random, machine: Machine) -> list[Action]:
        return [(0.0, partial(self.suspend, machine)), (rng.uniform(0.5, 6.0), partial(self.wake, machine))]

    def _jump(self, rng: random.Random, machine: Machine) -> list[Action]:
        by_s = rng.choice((-3600.0, -5.0, -0.5, 0.5, 5.0, 3600.0))
        return [(0.0, partial(self.jump, machine, by_s))]

    def _slow(self, rng: random.Random, machine: Machine) -> list[Action]:
        slowness = rng.choice((5.0, 20.0, 100.0, 400.0))
        return [
            (0.0, partial(self.slow, machine, slowness)),
            (rng.uniform(0.5, 5.0), partial(self.slow, machine, 1.0)),
        ]

    def crash(self, machine: Machine, back_s: float | None = None) -> None:
        """SIGKILL. Its broker is started again after `back_s`; None: by others."""
        if machine.running is not None:
            self.world.happened("process crash", machine.name)
            machine.kill()
            self._start_after(back_s, machine)

    def power_off(self, machine: Machine, back_s: float | None = None, share: float | None = None) -> None:
        """Power fails, and is back after `back_s`; None: others see to it. `share`: what part of all that was not
        synced is left."""
        if machine.is_on and self.may_lose(machine, "power failure"):
            share = self._outcomes.choice(FATES) if share is None else share
            self.world.happened("power failure", machine.name, f"{share:.0%} is left")
            machine.power_off(Fate(self._outcomes, share))
            self._start_after(back_s, machine)
        else:
            self.crash(machine, back_s)

    def _start_after(self, back_s: float | None, machine: Machine) -> None:
        if back_s is not None:
            self.world.after(back_s, self.brokers.start, machine)

    def lose_disk(self, machine: Machine, directory: str | None = None) -> None:
        """With its power, and before it is switched on again: all that it held, or one data directory of several."""
        if not self.may_lose(machine, "disk lost"):
            self.crash(machine)
            return
        self.power_off(machine)
        if machine.is_on:
            return
        self.world.happened("disk lost", machine.name, "" if directory is None else f"directory {directory}")
        machine.lose_disk(directory)

    def stop(self, machine: Machine) -> None:
        """SIGTERM. Whoever supervises it starts it again."""
        if machine.running is not None:
            self.world.happened("clean stop", machine.name)
            machine.stop()

    def pause(self, machine: Machine) -> None:
        if machine.running is not None:
            self.world.happened("pause", machine.name)
            machine.pause()

    def resume(self, machine: Machine) -> None:
        if machine.running is not None and machine.running.process.is_paused:
            self.world.happened("continue", machine.name)
            machine.resume()

    def suspend(self, machine: Machine) -> None:
        if machine.is_on and not machine.is_asleep:
            self.world.happened("suspend", machine.name)
            machine.suspend()

    def wake(self, machine: Machine) -> None:
        if machine.is_asleep:
            self.world.happened("continue", machine.name)
            machine.wake()

    def jump(self, machine: Machine, by_s: float) -> None:
        self.world.happened("clock jump", machine.name, f"{by_s:+g} s")
        machine.clock.jump(by_s)

    def slow(self, machine: Machine, slowness: float) -> None:
        self.world.happened("slow machine", machine.name, f"{slowness:g} times")
        machine.cpu.slowness = slowness

    def _rush(self, rng: random.Random, machine: Machine) -> list[Action]:
        del machine
        return [(0.0, partial(self.rush, rng.uniform(0.3, 2.0)))]

    def rush(self, for_s: float) -> None:
        """Producers have far more to send."""
        self.world.happened("rush", "", f"for {for_s:.1f} s")
        self.workload.is_rush_hour = True
        self.world.after(for_s, self._calm)

    def _calm(self) -> None:
        self.workload.is_rush_hour = False

    # -- disks -----------------------------------------------------------------------------------------------------

    def _slow_disk(self, rng: random.Random, machine: Machine) -> list[Action]:
        faults = machine.disk_faults

        def begin(call_ms: float, sync_ms: float) -> None:
            self.world.happened("disk fault", machine.name, f"a call takes {call_ms:g} ms, a sync {sync_ms:g} ms")
            faults.call_ms, faults.sync_ms = call_ms, sync_ms

        to = partial(begin, rng.choice((0.0, 1.0, 20.0)), rng.choice((5.0, 50.0, 500.0)))
        return [(0.0, to), (rng.uniform(0.5, 4.0), partial(begin, 0.0, 0.3))]

    def _failing_disk(self, rng: random.Random, machine: Machine) -> list[Action]:
        faults = machine.disk_faults

        def begin(read: float, write: float, sync: float) -> None:
            fails = any((read, write, sync))
            if fails and not self.may_lose(machine, "directory fails"):
                return
            what = f"fails: reads {read}, writes {write}, syncs {sync}"
            self.world.happened("directory fails" if fails else "disk fault", machine.name, what)
            faults.read_share, faults.write_share, faults.sync_share = read, write, sync
            self._doubtful[machine] = None

        shares = rng.choice(((0.3, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.3), (0.1, 0.1, 0.1)))
        return [(0.0, partial(begin, *shares)), (rng.uniform(0.2, 2.0), partial(begin, 0.0, 0.0, 0.0))]

    def _directory(self, rng: random.Random, machine: Machine) -> str | None:
        """One of several; None where there is but one."""
        count = self.brokers.directories[self.brokers.machines.index(machine)]
        return rng.choice(DATA_DIRS[:count]) if count > 1 else None

    def _dead_directory(self, rng: random.Random, machine: Machine) -> list[Action]:
        """A device fails, comes back, and the operator starts the broker anew."""
        directory = self._directory(rng, machine)
        if directory is None:
            return self._failing_disk(rng, machine)

        def begin(dead: str | None) -> None:
            what = "works again" if dead is None else "is dead"
            if dead is not None and not self.may_lose(machine, "directory fails"):
                return
            self.world.happened(
                "disk fault" if dead is None else "directory fails", machine.name, f"{directory} {what}"
            )
            machine.disk_faults.dead_directory = dead
            self._doubtful[machine] = None

        back_s = rng.uniform(0.5, 5.0)
        return [
            (0.0, partial(begin, directory)),
            (back_s, partial(begin, None)),
            (back_s + 0.001, partial(self.stop, machine)),
        ]

    def _lost_directory(self, rng: random.Random, machine: Machine) -> list[Action]:
        """The broker comes back with one of its directories empty."""
        lose = partial(self.lose_disk, machine, self._directory(rng, machine))
        return [(0.0, lose), (_soon(rng), partial(self.brokers.start, machine))]

    def _full_disk(self, rng: random.Random, machine: Machine) -> list[Action]:
        def begin(is_full: bool) -> None:
            self.world.happened("disk fault", machine.name, "full" if is_full else "not full any more")
            machine.disk_faults.is_full = is_full
            self._doubtful[machine] = None

        return [(0.0, partial(begin, True)), (rng.uniform(0.2, 3.0), partial(begin, False))]

    # -- network ---------------------------------------------------------------------------------------------------

    def _others(self, machine: Machine) -> list[str]:
        names = [each.name for each in (*self.brokers.machines, *self.clients) if each is not machine]
        return [*names, STORE_HOST] if self.world.store is not None else names

    def _cut(self, rng: random.Random, machine: Machine) -> list[Action]:
        """The machine from one other or from all, in one direction or in both."""
        others = self._others(machine)
        if rng.random() < 0.6:
            others = [rng.choice(others)]
        directions = rng.choice(("both", "to", "from"))
        pairs = [(machine.name, other) for other in others if directions in ("both", "to")]
        pairs += [(other, machine.name) for other in others if directions in ("both", "from")]

        def begin(is_cut: bool) -> None:
            what = " ".join(f"{source}>{target}" for source, target in pairs)
            self.world.happened("network fault", "", f"{'cut' if is_cut else 'whole again'}: {what}")
            for source, target in pairs:
                self.world.network.line(source, target).is_cut = is_cut

        return [(0.0, partial(begin, True)), (rng.uniform(0.3, 6.0), partial(begin, False))]

    def _bad_line(self, rng: random.Random, machine: Machine) -> list[Action]:
        """Slow, narrow, or losing packets, between the machine and one other."""
        other = rng.choice(self._others(machine))
        delay_ms, loss, bytes_per_ms = rng.choice(
            ((150.0, 0.0, None), (0.2, 0.2, None), (0.2, 0.0, 20.0), (30.0, 0.05, 100.0))
        )

        def begin(delay_ms: float, jitter_ms: float, loss: float, bytes_per_ms: float | None) -> None:
            what = f"{machine.name}-{other}: {delay_ms:g} ms, loses {loss:.0%}, {bytes_per_ms} bytes a ms"
            self.world.happened("network fault", "", what)
            for line in (self.world.network.line(machine.name, other), self.world.network.line(other, machine.name)):
                line.delay_ms, line.jitter_ms, line.loss, line.bytes_per_ms = delay_ms, jitter_ms, loss, bytes_per_ms

        default = self.world.network.default
        return [
            (0.0, partial(begin, delay_ms, delay_ms, loss, bytes_per_ms)),
            (
                rng.uniform(0.5, 5.0),
                partial(begin, default.delay_ms, default.jitter_ms, default.loss, default.bytes_per_ms),
            ),
        ]

    def _resets(self, rng: random.Random, machine: Machine) -> list[Action]:
        other = rng.choice(self._others(machine))

        def reset() -> None:
            self.world.happened("network fault", "", f"{machine.name}-{other}: reset")
            for connection in self.world.network.between(machine.name, other):
                self.world.network.reset(connection)

        return [(0.0, reset)]

    # -- the metadata store ----------------------------------------------------------------------------------------

    def _store_trouble(self, rng: random.Random, machine: Machine) -> list[Action]:
        store = self.world.store
        assert store is not None
        faults = store.faults(machine.name)

        def begin(refused: float, lost: float, hold_ms: float, watch_hold_ms: float) -> None:
            what = f"refuses {refused}, loses answers {lost}, holds {hold_ms} ms, watches {watch_hold_ms} ms"
            self.world.happened("store fault", machine.name, what)
            faults.refuse_share, faults.answer_lost_share = refused, lost
            faults.hold_ms, faults.watch_hold_ms = hold_ms, watch_hold_ms

        trouble = rng.choice(((0.5, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.0, 800.0, 0.0), (0.0, 0.3, 0.0, 3e3)))
        return [(0.0, partial(begin, *trouble)), (rng.uniform(0.5, 5.0), partial(begin, 0.0, 0.0, 0.0, 0.0))]

    def _store_away(self, rng: random.Random, machine: Machine) -> list[Action]:
        del machine
        store = self.world.store
        assert store is not None

        def away() -> None:
            self.world.happened("store fault", "", "away")
            store.stop()

        def back() -> None:
            self.world.happened("store fault", "", "back")
            store.start()

        return [(0.0, away), (rng.uniform(0.3, 6.0), back)]

    def _lapse(self, rng: random.Random, machine: Machine) -> list[Action]:
        """A broker's lease ends, though it was renewed."""
        del rng
        store = self.world.store
        assert store is not None

        def lapse() -> None:
            self.world.happened("store fault", machine.name, "its lease ends")
            store.lapse(broker_key(self.brokers.ids[machine.name]))

        return [(0.0, lapse)]

    def _compact(self, rng: random.Random, machine: Machine) -> list[Action]:
        del rng, machine
        store = self.world.store
        assert store is not None
        return [(0.0, store.compact)]

    def _older_store(self, rng: random.Random, machine: Machine) -> list[Action]:
        """A snapshot, brokers that start anew since, and then it stands in the store's place for a while."""
        del machine
        older, at_s, are_stopped = self.older_store, rng.uniform(3.0, 6.0), rng.random() < 0.5
        starts = [(rng.uniform(0.1, at_s - 2.0), partial(self.crash, each, 0.3)) for each in self.brokers.machines]
        return [
            (0.0, older.save),
            *starts,
            (at_s, partial(older.set_back, are_stopped=are_stopped)),
            (at_s + rng.uniform(1.0, 5.0), older.put_right),
        ]

    # -- operators -------------------------------------------------------------------------------------------------

    def _reassign(self, rng: random.Random, machine: Machine) -> list[Action]:
        """A partition moves: to as many brokers as it had, this one first."""
        order = rng.sample(range(1, len(self.brokers.machines) + 1), len(self.brokers.machines))
        first = self.brokers.ids[machine.name]
        order = [first, *(broker_id for broker_id in order if broker_id != first)]
        share = rng.random()

        def begin() -> None:
            if not self.partitions:
                return
            (identity, index), state = sorted(self.partitions.items())[int(share * len(self.partitions))]
            topic, present = name_of(identity), len(state.replicas)
            self.world.happened("operator", "", f"{topic}-{index} is reassigned")
            self.operators.reassign(topic, index, order[:present])

        return [(0.0, begin)]

    def _prefer(self, rng: random.Random, machine: Machine) -> list[Action]:
        del machine
        share = rng.random()

        def begin() -> None:
            if not self.partitions:
                return
            identity, index = sorted(self.partitions)[int(share * len(self.partitions))]
            topic = name_of(identity)
            self.world.happened("operator", "", f"{topic}-{index} goes to its preferred leader")
            self.operators.prefer(topic, index)

        return [(0.0, begin)]

    # -- the end of it ---------------------------------------------------------------------------------------------

    def heal(self) -> None:
        """Repairs everything: from now on all machines run, and reach one another.

        A broker whose disk had been failing is started anew, as its operator would do: it may have given up logs. One
        that is still stopping, on a slow disk perhaps, is killed: whoever supervises it waits no longer.
        """
        self.is_over = True
        self.world.happened("heal")
        self._calm()
        self.world.network.heal()
        self.older_store.put_right()
        if self.world.store is not None:
            self.world.store.heal()
        for machine in (*self.brokers.machines, *self.clients):
            machine.wake()
            machine.resume()
            machine.clock.jump(-machine.clock.wall_offset_s)  # an hour slow, a broker refuses what is written now
            machine.cpu.slowness = 1.0
            machine.disk_faults.heal()
        stopping = [each for each in self.brokers.machines if each.running and each.running.was_asked_to_stop]
        for machine in (*self._doubtful, *stopping):
            self.crash(machine)
        self.brokers.start_all()


def _soon(rng: random.Random) -> float:
    """Until somebody starts it again."""
    return rng.choice((0.01, 0.3, 1.0, 3.0)) * (0.5 + rng.random())
