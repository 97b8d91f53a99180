"""The brokers of a world: production code, each on a machine of its own, started again when it falls.

Whoever starts one again does as its log says: while a mark of a failed sync is missing, he restarts the machine first.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener
from odradek.broker.config.settings import Settings
from odradek.broker.server import Broker
from odradek.testing.sim.world.losing_disk import ALL_IS_KEPT
from odradek.testing.sim.world.machine import Machine, Main, Running
from odradek.testing.sim.world.world import World

PORT: Final = 9092
DATA_DIRS: Final = ("data", "data2")
SUPERVISOR_S: Final = 1.0
"""So long after a broker has ended by itself somebody starts it again."""


class Brokers:
    """The machines with brokers, by the names b1, b2, …; their node ids are these numbers."""

    def __init__(self, world: World, directories: Sequence[int], options: Mapping[str, str]) -> None:
        """`directories`: how many data directories each of them has."""
        self.world = world
        self.options = dict(options)
        self.directories = tuple(directories)
        self.machines: list[Machine] = []
        self.serving: dict[str, Broker] = {}
        """Those that have come as far as accepting connections, by machine; not those that were killed."""
        self._marks_refused: dict[str, dict[str, None]] = {}  # paths, by machine
        for number in range(1, len(directories) + 1):
            machine = world.machine(f"b{number}")
            machine.on_exit = self._exited
            self.machines.append(machine)

    @property
    def ids(self) -> dict[str, int]:
        """Node ids, by machine."""
        return {machine.name: node_id for node_id, machine in enumerate(self.machines, 1)}

    def machine(self, node_id: int) -> Machine:
        return self.machines[node_id - 1]

    @property
    def bootstrap(self) -> list[str]:
        return [f"{machine.address}:{PORT}" for machine in self.machines]

    def start(self, machine: Machine) -> None:
        """Starts the broker, and the machine if it is off, unless it runs. If the machine sleeps, later."""
        if machine.is_asleep:
            self.world.after(SUPERVISOR_S, self.start, machine)
            return
        if machine.running is None and self._is_in_doubt(machine):
            self.world.happened("power failure", machine.name, "its operator restarts it; all is left")
            machine.power_off(ALL_IS_KEPT)
        if not machine.is_on:
            machine.boot()
        if machine.running is None:
            self._marks_refused.pop(machine.name, None)
            self.serving.pop(machine.name, None)
            self.world.happened("start", machine.name)
            machine.start(self._main(self.machines.index(machine) + 1))

    def start_all(self) -> None:
        for machine in self.machines:
            self.start(machine)

    def mark_refused(self, path: str) -> None:
        """The broker whose turn it is has logged that the device did not take this mark of a failed sync."""
        loop = asyncio.get_running_loop()
        for machine in self.machines:
            if machine.running is not None and machine.running.process.loop is loop:
                self._marks_refused.setdefault(machine.name, {})[path] = None

    def _is_in_doubt(self, machine: Machine) -> bool:
        paths = self._marks_refused.get(machine.name, {})
        return machine.is_on and not all(machine.device.exists(path) for path in paths)

    def broker(self, machine: Machine) -> Broker | None:
        """The broker that serves on a machine now."""
        return None if machine.running is None else self.serving.get(machine.name)

    def _main(self, node_id: int) -> Main:
        async def main(running: Running) -> None:
            environment = running.environment
            listener = Listener("PLAINTEXT", environment.address, PORT)
            config = BrokerConfig(self.options)
            directories = DATA_DIRS[: self.directories[node_id - 1]]
            settings = Settings([listener], {listener.name: listener}, directories, node_id, config)
            broker = Broker(settings, environment, running.disk, store=running.store)
            broker.on_failure = running.stop  # without its last directory its process ends
            await broker.start()
            self.serving[running.machine.name] = broker
            self.world.trace.note(running.process.name, "serves")
            await running.wait_for_stop()
            await broker.stop()

        return main

    def _exited(self, running: Running, why: str) -> None:
        machine = running.machine
        self.world.happened("exit", machine.name, why)
        self.world.after(SUPERVISOR_S, self._supervise, machine)

    def _supervise(self, machine: Machine) -> None:
        if machine.is_on:
            self.start(machine)
