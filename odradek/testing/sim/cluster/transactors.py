"""The transactional clients of a world, and their topics: writers write `steps`, copiers copy that to `copies`.

    transactors = Transactors(world, workload, partitions, desks)
    creator.start(transactors.creator(replication_factor, configs))
    transactors.start()
    …
    transactors.stop_writers(); reader.start(transactors.until_copied())

Readers of both topics have `read_committed`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from odradek.client.errors.client_errors import ClientError, ProducerFenced
from odradek.client.fetching.list_offsets import EARLIEST, LATEST
from odradek.testing.sim.checking.history import Polled
from odradek.testing.sim.checking.transaction_history import NO_SOURCE, InTransaction
from odradek.testing.sim.cluster.fleet import Fleet
from odradek.testing.sim.cluster.reading import Reader
from odradek.testing.sim.cluster.transactor import Copier, Desk, Writer
from odradek.testing.sim.cluster.workload import RETRY_MS, Workload
from odradek.testing.sim.world.machine import Machine, Main, Running
from odradek.testing.sim.world.world import World

STEPS: Final = "steps"
COPIES: Final = "copies"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
FENCED_MS: Final = 2_000.0
"""So long a producer stays away that another one with its id has fenced, on average."""

BROKER_OPTIONS: Final = {"transaction.state.log.num.partitions": "1"}


@dataclass(frozen=True, slots=True)
class Desks:
    """Who writes, and who copies."""

    writers: tuple[Desk, ...] = ()
    copiers: tuple[Desk, ...] = ()


class Transactors(Fleet):
    """All of them, each on a machine of its own: writers t1, t2, …, copiers c1, c2, …"""

    def __init__(self, world: World, workload: Workload, partitions: int, desks: Desks) -> None:
        super().__init__(world)
        self.desks = desks
        self.steps, self.copies = (
            Workload(world, workload.bootstrap, topic, partitions, values=workload.values) for topic in (STEPS, COPIES)
        )
        self._desks = {f"t{number}": desk for number, desk in enumerate(desks.writers, 1)}
        self._desks |= {f"c{number}": desk for number, desk in enumerate(desks.copiers, 1)}
        self._lives: Counter[str] = Counter()
        self._is_repaired = False

    def creator(self, replication_factor: int, configs: Mapping[str, str]) -> Main:
        """Creates both topics."""

        async def main(running: Running) -> None:
            for workload in (self.steps, self.copies):
                await workload.creator(replication_factor, configs)(running)

        return main

    def start(self) -> None:
        for name in self._desks:
            self.add(name)

    def come_all(self) -> None:
        """All is repaired: who copies gets through what is left."""
        self._is_repaired = True
        super().come_all()

    @property
    def copiers(self) -> list[Machine]:
        return [machine for machine in self.machines if machine.name.startswith("c")]

    def _main(self, machine: Machine) -> Main:
        """Until it is stopped; with another producer, and another member, where one comes to an end."""

        async def main(running: Running) -> None:
            rng = self.world.rng(f"{machine.name} {machine.incarnation}")
            while not running.is_stopping:
                try:
                    await self._life(machine, running).live()
                except ClientError as error:
                    if machine.running is not running:
                        return  # it is killed, and what it had open fails
                    self.world.trace.note(running.process.name, "ends", f"{type(error).__name__}: {error}")
                    is_fenced = isinstance(error, ProducerFenced)
                    pause_ms = rng.expovariate(1.0) * FENCED_MS if is_fenced else RETRY_MS
                    await running.environment.sleep(pause_ms)

        return main

    def _life(self, machine: Machine, running: Running) -> Writer | Copier:
        desk = self._desks[machine.name]
        self._lives[machine.name] += 1
        name = f"{machine.name}/{self._lives[machine.name]}"
        life: Writer | Copier
        if machine.name.startswith("t"):
            life = Writer(self.world, self.steps, running, desk, name)
        else:
            life = Copier(self.world, self.steps, self.copies, running, desk, name)
        life.is_hurried = lambda: self._is_repaired
        return life

    # -- the end -----------------------------------------------------------------------------------------------------

    def until_copied(self) -> Main:
        """Reads until each record that can be read has a copy that can be read."""

        async def main(running: Running) -> None:
            steps = Reader(self.steps, running, "read_committed")
            copies = Reader(self.copies, running, "read_committed")
            await _read(steps)
            while self.not_copied():
                await _read(copies)
                await running.environment.sleep(RETRY_MS)

        return main

    def not_copied(self) -> set[int]:
        """Values that somebody has read from the one topic, and nobody a copy of from the other."""
        sources = {each.value: each.source for each in self.world.history.of(InTransaction)}
        read: dict[str, set[int]] = {STEPS: set(), COPIES: set()}
        for polled in self.world.history.of(Polled):
            if polled.topic in read:
                read[polled.topic] |= {value for _, value in polled.records}
        return read[STEPS] - {sources.get(value, NO_SOURCE) for value in read[COPIES]}


async def _read(reader: Reader) -> None:
    """From where it is, at first the beginning, to where the logs end now, however often it must be tried."""
    while True:
        try:
            if not reader.positions:
                for partition, offset in (await reader.offsets(EARLIEST)).items():
                    reader.place(partition, offset)
            await reader.read_up_to(await reader.offsets(LATEST))
        except ClientError:
            await reader.running.environment.sleep(RETRY_MS)
        else:
            return
