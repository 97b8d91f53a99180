"""A simulated machine: a host, clocks, a device, and at most one process, which may be started again and again.

    machine.boot(); machine.start(serve)         # `serve(process)` is what it runs
    machine.kill()                               # SIGKILL: what was written survives in the page cache
    machine.power_off(Fate(rng)); ... machine.boot(); machine.start(serve)
    machine.lose_disk()                          # when it is off

Each process has an environment, a disk and, where the world has one, a client of the metadata store. All of them are
severed when it ends.
"""

import random
from collections.abc import Callable, Coroutine
from typing import Any, Final

from odradek.broker.cluster.store import MetadataStore
from odradek.runtime.worker import Worker
from odradek.testing.sim.world.clock import Clock
from odradek.testing.sim.world.device import LosingDevice
from odradek.testing.sim.world.disk import DiskFaults, SimDisk
from odradek.testing.sim.world.environment import Serve, SimEnvironment
from odradek.testing.sim.world.losing_disk import Outcome
from odradek.testing.sim.world.network import Network
from odradek.testing.sim.world.process import Cpu, Process
from odradek.testing.sim.world.scheduler import Scheduler
from odradek.testing.sim.world.store import SimStore
from odradek.testing.sim.world.trace import Trace
from odradek.testing.sim.world.worker import SimWorker, WorkerDisk, WorkerFaults

CLOCK_DRIFT: Final = 0.0001
"""How much faster or slower than the world's a machine's clock may run."""

Main = Callable[["Running"], Coroutine[Any, Any, object]]


class Running:
    """A process with all that it was given. `incarnation` counts the starts of its machine's processes.

    `stop` asks it to end cleanly: `wait_for_stop` returns then, in the process. `exited` calls `on_exit` with why.
    """

    def __init__(
        self,
        machine: "Machine",
        process: Process,
        environment: SimEnvironment,
        disk: SimDisk,
        store: MetadataStore | None,
        incarnation: int,
    ) -> None:
        self.machine = machine
        self.process = process
        self.environment = environment
        self.disk = disk
        self.store = store
        self.incarnation = incarnation
        self.was_asked_to_stop = False
        """From outside, and perhaps unknown to the process, which may stand still."""
        self._stop = process.loop.create_future()

    @property
    def is_stopping(self) -> bool:
        return self._stop.done()

    async def wait_for_stop(self) -> None:
        await self._stop

    def stop(self) -> None:
        """SIGTERM."""
        self.was_asked_to_stop = True
        self.process.post(self._ask_to_stop)

    def _ask_to_stop(self) -> None:
        if not self._stop.done():
            self._stop.set_result(None)


class Machine:
    """See the module. `running` is its process, None when there is none."""

    def __init__(
        self,
        name: str,
        address: str,
        scheduler: Scheduler,
        trace: Trace,
        network: Network,
        rng: random.Random,
        store: SimStore | None = None,
        errors: list[str] | None = None,
    ) -> None:
        """`errors` takes those that no process has handled."""
        self.name = name
        self.address = address
        self.scheduler = scheduler
        self.trace = trace
        self.network = network
        self.host = network.add_host(name, address)
        self.host.is_up = False
        self.store = store
        self.cpu = Cpu()
        self.disk_faults = DiskFaults()
        self.worker_faults = WorkerFaults()
        self.device = LosingDevice()
        self.clock = Clock(scheduler, 0.0)
        self.running: Running | None = None
        self.incarnation = 0
        self.on_exit: Callable[[Running, str], object] = _ignore
        """Called when a process has ended by itself, with the error, or with nothing."""
        self._rng = rng
        self._worker_rng = rng
        self._workers: list[Process] = []
        self._errors: list[str] = [] if errors is None else errors
        self._boot_id = ""
        self.is_on = False
        self.is_asleep = False

    def __repr__(self) -> str:
        return f"<machine {self.name}>"

    # -- on and off ------------------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Switches it on. Its clocks begin anew."""
        assert not self.is_on, f"{self.name} is on"
        rng = self._rng
        rate = 1.0 + CLOCK_DRIFT * (2.0 * rng.random() - 1.0)
        self.clock = Clock(self.scheduler, rng.uniform(5.0, 500.0), self.clock.wall_offset_s, rate)
        self._boot_id = f"{rng.getrandbits(64):016x}"
        self.is_on = self.host.is_up = True
        self.trace.note(self.name, "on")

    def power_off(self, outcome: Outcome) -> None:
        """Power fails: of what was not synced `outcome` says what is left. Nobody is told."""
        self.trace.note(self.name, "off")
        self.is_on = self.is_asleep = self.host.is_up = False
        self._end(is_silent=True)
        self.kill_workers()
        self.device = self.device.after_power_failure(outcome)

    def lose_disk(self, directory: str | None = None) -> None:
        """The machine, which is off, gets another disk, an empty one; or one in the place of a directory."""
        assert not self.is_on, f"{self.name} is on"
        self.trace.note(self.name, "has a new disk", directory or "")
        if directory is None:
            self.device = LosingDevice()
        elif self.device.exists(directory):
            self.device.remove_tree(directory)
            self.device.sync_dir("")

    def suspend(self) -> None:
        """It sleeps: nothing runs, packets are lost, and the clock that event loops count stands still."""
        assert self.is_on, f"{self.name} is off"
        self.trace.note(self.name, "sleeps")
        self.is_asleep = True
        self.host.is_up = False
        self.clock.sleep()
        for worker in self._workers:
            worker.pause()
        if self.running is not None:
            self.running.process.pause()

    def wake(self) -> None:
        """After `suspend`. Nothing happens if it does not sleep, for it has lost power meanwhile."""
        if not self.is_asleep:
            return
        self.trace.note(self.name, "wakes")
        self.is_asleep = False
        self.host.is_up = True
        self.clock.wake()
        for worker in self._workers:
            worker.resume()
        if self.running is not None:
            self.running.process.resume()

    # -- its process -----------------------------------------------------------------------------------------------

    def start(self, main: Main) -> Running:
        """Starts a process that runs `main` and ends with it."""
        assert self.is_on, f"{self.name} is off"
        assert not self.is_asleep, f"{self.name} sleeps"
        assert self.running is None, f"{self.name} has a process"
        self.incarnation += 1
        name = f"{self.name}/{self.incarnation}"
        rng = self._rng
        chance = random.Random(rng.getrandbits(64))
        process = Process(name, self.scheduler, self.trace, self.clock, chance, self.cpu, self._errors)
        self.network.add_process(process, self.host)
        entropy, faults_seed = random.Random(rng.getrandbits(64)), rng.getrandbits(64)
        faults = random.Random(faults_seed)
        self._worker_rng = random.Random(faults_seed + 1)
        environment = SimEnvironment(process, self.network, self.address, entropy, self._boot_id, self._start_worker)
        disk = SimDisk(process, self.device, self.disk_faults, faults)
        store = None if self.store is None else self.store.client(process, self.name)
        running = self.running = Running(self, process, environment, disk, store, self.incarnation)
        self.trace.note(name, "starts")
        process.start(self._main(running, main), "main")
        return running

    def _start_worker(self, owner: Process, serve: Serve) -> Worker:
        """A process beside its owner, which lives on when that is killed."""
        rng = self._worker_rng
        self._workers = [worker for worker in self._workers if not worker.is_dead]
        chance = random.Random(rng.getrandbits(64))
        process = Process(
            f"{owner.name}+worker", self.scheduler, self.trace, self.clock, chance, self.cpu, self._errors
        )
        self._workers.append(process)
        disk = WorkerDisk(process, self.device, self.disk_faults, random.Random(rng.getrandbits(64)))
        return SimWorker(owner, process, disk, self.worker_faults, random.Random(rng.getrandbits(64)), serve)

    async def _main(self, running: Running, main: Main) -> None:
        why = ""
        try:
            await main(running)
        except Exception as error:  # noqa: BLE001 - a process that fails at its top ends
            why = f"{type(error).__name__}: {error}"
        # The process cannot end itself from within its own round: the world does, right after it.
        self.scheduler.after(0.0, self._exit, running, why)

    def _exit(self, running: Running, why: str) -> None:
        if self.running is not running:
            return
        self.trace.note(running.process.name, "exits", why)
        self._end(is_silent=False)
        self.on_exit(running, why)

    def stop(self) -> None:
        """SIGTERM."""
        if self.running is not None:
            self.running.stop()

    def kill(self) -> None:
        """SIGKILL. What the process wrote stays in the page cache."""
        self._end(is_silent=False)

    def kill_workers(self) -> None:
        """Of its process, and of those that it had: they outlive `kill`."""
        for worker in self._workers:
            worker.kill()

    def pause(self) -> None:
        """SIGSTOP."""
        if self.running is not None:
            self.trace.note(self.running.process.name, "pauses")
            self.running.process.pause()

    def resume(self) -> None:
        """SIGCONT."""
        if self.running is not None and not self.is_asleep:
            self.trace.note(self.running.process.name, "goes on")
            self.running.process.resume()

    def _end(self, *, is_silent: bool) -> None:
        running, self.running = self.running, None
        if running is None:
            return
        process = running.process
        process.when_killed(lambda: self.network.process_ended(process, is_silent=is_silent))
        process.kill()


def _ignore(running: Running, why: str) -> None:
    """Nobody wants to know."""
