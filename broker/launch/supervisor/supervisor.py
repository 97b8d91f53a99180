"""Keeps the brokers of one machine running, each in a process, and stops them together.

**A broker that dies** loses its lease as soon as it is reaped, so that others take its place at once, and is started
again at the same ports: after 0.1 s, then after twice as long (restarts.py). The fifth death within a minute leaves it
down, with an error that says why; the others go on, and when none is left the supervisor ends.

**All stop together**: nobody takes over from anybody, so all are in sync when they come back. Each phase ends on all
brokers before the next one begins: decide nothing more, answer what runs (while they replicate from one another), end.
Whoever is not done in time is killed.

**A supervisor that was killed** leaves brokers that are just stopping (broker_process.py). The next one waits for each
data directory's lock before it starts a broker on it.
"""

import asyncio
import logging
import posixpath
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Final

from odradek.broker.cluster.socket_store.messages import CommandRefused
from odradek.broker.cluster.socket_store.server import StoreServer
from odradek.broker.directories.cluster_layout import broker_directory
from odradek.broker.disk.disk import Disk, LockHeld
from odradek.broker.launch.cluster_directory import LOCK_FILE
from odradek.broker.launch.supervisor.child import Child
from odradek.broker.launch.supervisor.control import DRAIN, LEAVE, QUIESCE, STOP
from odradek.broker.launch.supervisor.in_sync import OutOfSync
from odradek.broker.launch.supervisor.plan import BrokerPlan, Options
from odradek.broker.launch.supervisor.restarts import DEATHS_MAX, Restarts
from odradek.broker.startup_errors import StartRefused
from odradek.runtime.environment import Environment
from odradek.runtime.signal import Signal
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

BROKER_MODULE: Final = "odradek.broker.launch.supervisor.broker_process"
PAGE_MODULE: Final = "odradek.broker.launch.supervisor.page_process"
LOCK_WAIT_MS: Final = 30_000.0
LOCK_RETRY_MS: Final = 20.0
PHASE_MS: Final = 6_000.0
"""How long all may take for one phase of a stop; a broker drains for four seconds at most."""
LEAVE_MS: Final = 30_000.0
"""How long a broker may take to give up what it leads, and to end."""
IN_SYNC_MS: Final = 300_000.0
IN_SYNC_LOOK_MS: Final = 200.0


class Member:
    """A broker that is to run."""

    def __init__(self, plan: BrokerPlan, on_change: Callable[[], None]) -> None:
        self.plan = plan
        self.child = Child(f"broker {plan.node_id}", BROKER_MODULE, on_change)
        self.restarts = Restarts()
        self.port = plan.listener.port
        self.metrics_port = 0
        self.is_leaving = False
        """It was asked to end, and is started again by who asked."""
        self.is_down = False
        """It is not started again."""

    @property
    def is_ready(self) -> bool:
        return self.child.ready is not None

    def keep_ports(self) -> None:
        """The ports of its first start are those of all that follow."""
        if self.child.ready is not None:
            self.port = self.child.ready["port"]
            self.metrics_port = self.child.ready["metrics_port"]


class Supervisor:
    """See the module. In the loop's thread."""

    def __init__(
        self,
        plans: Sequence[BrokerPlan],
        options: Options,
        defaults: Mapping[str, str],
        server: StoreServer,
        environment: Environment,
        disk: Disk,
        stop: asyncio.Event,
    ) -> None:
        """`defaults`: of topics. `server`: of the store, which is its owner's. `stop`: whoever sets it calls
        `look_again` then."""
        self._stop = stop
        self._options = options
        self._defaults = defaults
        self._server = server
        self._environment = environment
        self._disk = disk
        self._tasks = Tasks(environment.loop)
        self._changed = Signal()
        self._is_started = False
        self._is_rolling = False
        self.members = [Member(each, self._changes) for each in plans]
        self._page = Child("metrics", PAGE_MODULE, self._changes)
        self._page_restarts = Restarts()
        self.was_clean = True
        """No broker had to be killed."""

    # -- start ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Returns when all brokers accept connections, or when they are to stop. Raises StartRefused with the first one
        that does not start; what runs is to be stopped then."""
        for member in self.members:
            await self._start(member)
        if self._options.metrics is not None:
            await self._start_page()
        await self._until(lambda: self._refusal is not None or self._all_ready or self._stop.is_set())
        if self._refusal is not None:
            raise StartRefused(self._refusal)
        self._is_started = True

    @property
    def _all_ready(self) -> bool:
        page_ready = self._options.metrics is None or self._page.ready is not None
        return page_ready and all(member.is_ready for member in self.members)

    @property
    def _refusal(self) -> str | None:
        """Why the first start has failed."""
        children = [member.child for member in self.members if member.is_down]
        if self._options.metrics is not None and self._page.failure:
            children.append(self._page)
        return None if not children else f"{children[0].name}: {children[0].failure}"

    async def _start(self, member: Member) -> None:
        """Raises StartRefused, OSError."""
        options = self._options
        if options.data_dir is not None:
            await self._until_unlocked(broker_directory(options.data_dir, member.plan.node_id))
        store = f"unix:{self._server.path}"
        page = None if options.metrics is None else member.metrics_port
        await member.child.start(member.plan.begin(options, self._defaults, store, member.port, page))

    async def _until_unlocked(self, directory: str) -> None:
        """A broker of a supervisor that was killed may still write there. Raises StartRefused."""
        if not self._disk.exists(directory):
            return
        deadline_ms = self._environment.monotonic_ms() + LOCK_WAIT_MS
        is_said = False
        while not self._stop.is_set():
            try:
                self._disk.lock(posixpath.join(directory, LOCK_FILE)).release()
                return
            except LockHeld as error:
                if self._environment.monotonic_ms() >= deadline_ms:
                    raise StartRefused(
                        f"the data directory {directory} is in use, and was for {LOCK_WAIT_MS / 1000:g} s: stop the "
                        "broker that runs on it"
                    ) from error
                if not is_said:
                    is_said = True
                    logger.warning("%s is in use yet, and is waited for %g s at most", directory, LOCK_WAIT_MS / 1000)
            except OSError as error:
                raise StartRefused(f"the directory {directory} cannot be used: {error.strerror or error}") from error
            await self._environment.sleep(LOCK_RETRY_MS)

    async def _start_page(self) -> None:
        metrics = self._options.metrics
        assert metrics is not None, "there is a page"
        await self._page.start({"listen": [metrics.host, metrics.port]})
        self._tell_page()

    def _tell_page(self) -> None:
        if self._options.metrics is not None:
            self._page.tell({"brokers": {str(each.plan.node_id): each.metrics_port for each in self.members}})

    # -- while it runs ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Returns when no broker is left that runs or will, or when they are to stop."""
        await self._until(lambda: self._stop.is_set() or all(member.is_down for member in self.members))

    def look_again(self) -> None:
        """A child of this process has ended (SIGCHLD), or all are to stop."""
        self._changes()

    def _changes(self) -> None:
        for member in self.members:
            self._look_at(member)
        self._look_at_page()
        self._changed.give()

    def _look_at(self, member: Member) -> None:
        child = member.child
        if child.is_running and member.is_ready and (child.ready or {})["port"] != member.port:
            member.keep_ports()
        if child.is_running and member.is_ready and (child.ready or {})["metrics_port"] != member.metrics_port:
            member.keep_ports()
            self._tell_page()
        if not child.is_running:
            return
        pid = child.pid
        ending = child.reap()
        if ending is None:
            return
        self._server.process_ended(pid)
        if not self._stop.is_set() and not member.is_leaving:
            self._died(member, ending if not child.failure else f"{ending}: {child.failure}")

    def _died(self, member: Member, how: str) -> None:
        name = member.child.name
        if not self._is_started:
            member.child.failure = member.child.failure or how
            member.is_down = True
            return
        delay_ms = member.restarts.died(self._environment.monotonic_ms())
        if delay_ms is None:
            member.is_down = True
            logger.error(
                "%s has died %d times within a minute, and is left down: the last time it %s", name, DEATHS_MAX, how
            )
            return
        logger.error("%s %s, and is started again in %g s", name, how, delay_ms / 1000)
        self._tasks.start(self._again(member, delay_ms), f"start {name} again")

    async def _again(self, member: Member, delay_ms: float) -> None:
        await self._environment.sleep(delay_ms)
        while not self._stop.is_set():
            try:
                await self._start(member)
                return
            except (OSError, StartRefused) as error:  # of memory or descriptors there may be enough in a moment
                logger.error("%s cannot be started, which is tried again: %s", member.child.name, error)
                if member.child.is_running:
                    return  # without a lifeline; its end is that of any other
            await self._environment.sleep(delay_ms)

    def _look_at_page(self) -> None:
        ending = self._page.reap()
        if ending is None or self._stop.is_set():
            return
        if not self._is_started:
            self._page.failure = self._page.failure or ending
            return
        delay_ms = self._page_restarts.died(self._environment.monotonic_ms())
        if delay_ms is None:
            logger.error("the metrics page has died %d times within a minute, and is left down", DEATHS_MAX)
            return
        logger.error("the metrics page %s, and is started again in %g s", ending, delay_ms / 1000)
        self._tasks.start(self._page_again(delay_ms), "start the metrics page again")

    async def _page_again(self, delay_ms: float) -> None:
        await self._environment.sleep(delay_ms)
        if not self._stop.is_set():
            await self._start_page()

    # -- roll -----------------------------------------------------------------------------------------------------

    async def on_command(self, command: str) -> AsyncGenerator[str]:
        """What is asked for over the socket. Raises CommandRefused."""
        if command != "roll":
            raise CommandRefused(f"the supervisor does not know {command}: both should be of one release")
        if self._options.data_dir is None:
            raise CommandRefused("the brokers keep everything in memory, and would lose it by being restarted")
        if self._is_rolling:
            raise CommandRefused("the brokers are being restarted already")
        self._is_rolling = True
        try:
            for member in self.members:
                async for line in self._roll(member):
                    yield line
            await self._in_sync()
        finally:
            self._is_rolling = False
        yield f"all {len(self.members)} brokers were restarted, and all replicas are in sync"

    async def _roll(self, member: Member) -> AsyncGenerator[str]:
        """Restarts one, once nobody else is missed. Raises CommandRefused."""
        child = member.child
        await self._in_sync()
        self._require_all_ready()
        began_ms = self._environment.monotonic_ms()
        member.is_leaving = True
        try:
            child.order(LEAVE)
            try:
                await self._until(lambda: not child.is_running, LEAVE_MS)
            except TimeoutError:
                logger.error("%s did not stop in %g s, and is killed", child.name, LEAVE_MS / 1000)
                yield f"{child.name} did not stop in {LEAVE_MS / 1000:g} s, and is killed"
                child.kill()
                await self._until(lambda: not child.is_running)
        finally:
            member.is_leaving = False
        try:
            await self._start(member)
        except (OSError, StartRefused) as error:
            self._died(member, f"could not be started: {error}")
        await self._until(lambda: member.is_ready or member.is_down or self._stop.is_set())
        self._require_all_ready()
        yield f"{child.name} was restarted in {(self._environment.monotonic_ms() - began_ms) / 1000:.1f} s"

    def _require_all_ready(self) -> None:
        """Raises CommandRefused."""
        if self._stop.is_set():
            raise CommandRefused("the cluster stops")
        missing = [member.child.name for member in self.members if not member.is_ready]
        if missing:
            raise CommandRefused(f"{', '.join(missing)} does not run: no other broker is restarted meanwhile")

    async def _in_sync(self) -> None:
        """Returns when every replica is in sync. Raises CommandRefused when that takes too long."""
        out_of_sync = OutOfSync(self._server.store)
        deadline_ms = self._environment.monotonic_ms() + IN_SYNC_MS
        while (found := await out_of_sync.first()) is not None:
            self._require_running()
            if self._environment.monotonic_ms() >= deadline_ms:
                raise CommandRefused(
                    f"{found} has replicas that are not in sync, and had for {IN_SYNC_MS / 1000:g} s: see `odradek "
                    "cluster status`, and roll again"
                )
            await self._environment.sleep(IN_SYNC_LOOK_MS)

    def _require_running(self) -> None:
        if self._stop.is_set():
            raise CommandRefused("the cluster stops")

    # -- stop -----------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Returns when no process is left."""
        self._stop.set()
        self._changed.give()
        for order in (QUIESCE, DRAIN):
            await self._phase(order)
        for child in self._children:
            child.order(STOP)
        self._page.let_go()
        try:
            await self._until(lambda: not self._children, PHASE_MS)
        except TimeoutError:
            for child in self._children:
                self.was_clean = False
                logger.error("%s did not stop in time, and is killed", child.name)
                child.kill()
            await self._until(lambda: not self._children)
        await self._tasks.close()

    @property
    def _children(self) -> list[Child]:
        """Those that run."""
        return [child for child in (*(each.child for each in self.members), self._page) if child.is_running]

    async def _phase(self, order: str) -> None:
        """Has all brokers that are ready carry it out; one that does not is left to the end."""
        children = [member.child for member in self.members if member.child.is_running and member.is_ready]
        for child in children:
            child.order(order)
        try:
            await self._until(lambda: all(order in child.done or not child.is_running for child in children), PHASE_MS)
        except TimeoutError:
            late = ", ".join(child.name for child in children if order not in child.done and child.is_running)
            logger.error("%s did not %s in %g s", late, order, PHASE_MS / 1000)

    async def _until(self, condition: Callable[[], bool], timeout_ms: float | None = None) -> None:
        """Raises TimeoutError."""
        deadline_ms = None if timeout_ms is None else self._environment.monotonic_ms() + timeout_ms
        while True:
            seen = self._changed.count
            if condition():
                return
            left_ms = None if deadline_ms is None else max(0.0, deadline_ms - self._environment.monotonic_ms())
            await self._changed.after(seen, left_ms)

    @property
    def addresses(self) -> list[str]:
        """Of all brokers, as clients are told them."""
        found: list[Any] = [address for each in self.members for address in (each.child.ready or {})["addresses"]]
        return [str(address) for address in found]
