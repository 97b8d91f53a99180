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
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from odradek.broker.directories.cluster_layout import broker_directory
from odradek.broker.disk.disk import Disk, LockHeld
from odradek.broker.launch.cluster_directory import LOCK_FILE
from odradek.broker.launch.supervisor.child import Child
from odradek.broker.launch.supervisor.child_process import BrokersAhead
from odradek.broker.launch.supervisor.control import DRAIN, QUIESCE, STOP
from odradek.broker.launch.supervisor.member import Member
from odradek.broker.launch.supervisor.plan import BrokerPlan, Options
from odradek.broker.launch.supervisor.restarts import DEATHS_MAX, Restarts
from odradek.broker.startup_errors import StartRefused
from odradek.runtime.environment import Environment
from odradek.runtime.signal import Signal
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

PAGE_MODULE: Final = "odradek.broker.launch.supervisor.page_process"
LOCK_WAIT_MS: Final = 30_000.0
LOCK_RETRY_MS: Final = 20.0
PHASE_MS: Final = 6_000.0
"""How long all may take for one phase of a stop; a broker drains for four seconds at most."""


class BrokersStore(Protocol):
    """The metadata store of the brokers, as far as who runs them has to do with it."""

    @property
    def address(self) -> str:
        """As `metadata.store` has it."""
        ...

    def process_ended(self, pid: int) -> None:
        """A broker's process has been reaped, so its leases may end at once."""
        ...


class Supervisor:
    """See the module. In the loop's thread."""

    def __init__(
        self,
        plans: Sequence[BrokerPlan],
        options: Options,
        defaults: Mapping[str, str],
        store: BrokersStore,
        environment: Environment,
        disk: Disk,
        stop: asyncio.Event,
        ahead: BrokersAhead,
    ) -> None:
        """`defaults`: of topics. `store`: is its owner's. `stop`: whoever sets it calls
        `look_again` then. `ahead`: its owner's, too."""
        self._stop = stop
        self.options = options
        self._ahead = ahead
        self._defaults = defaults
        self._store = store
        self.environment = environment
        self._disk = disk
        self._tasks = Tasks(environment.loop)
        self._changed = Signal()
        self._is_started = False
        self.members = [Member(each, self._changes) for each in plans]
        self._page = Child("metrics", PAGE_MODULE, self._changes)
        self._page_restarts = Restarts()
        self.was_clean = True
        """No broker had to be killed."""

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    # -- start ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Returns when all brokers accept connections, or when they are to stop. Raises StartRefused with the first one
        that does not start; what runs is to be stopped then."""
        for member in self.members:
            await self.start_broker(member)
        self._ahead.close()
        if self.options.metrics is not None:
            await self._start_page()
        await self.until(lambda: self._refusal is not None or self._all_ready or self.is_stopping)
        if self._refusal is not None:
            raise StartRefused(self._refusal)
        self._is_started = True

    @property
    def _all_ready(self) -> bool:
        page_ready = self.options.metrics is None or self._page.ready is not None
        return page_ready and all(member.is_ready for member in self.members)

    @property
    def _refusal(self) -> str | None:
        """Why the first start has failed."""
        children = [member.child for member in self.members if member.is_down]
        if self.options.metrics is not None and self._page.failure:
            children.append(self._page)
        return None if not children else f"{children[0].name}: {children[0].failure}"

    async def start_broker(self, member: Member) -> None:
        """Raises StartRefused, OSError."""
        options = self.options
        if options.data_dir is not None:
            await self._until_unlocked(broker_directory(options.data_dir, member.plan.node_id))
        page = None if options.metrics is None else member.metrics_port
        await member.child.start(
            member.plan.begin(options, self._defaults, self._store.address, member.port, page),
            self._ahead.take(member.plan.node_id),
        )

    async def _until_unlocked(self, directory: str) -> None:
        """A broker of a supervisor that was killed may still write there. Raises StartRefused."""
        if not self._disk.exists(directory):
            return
        deadline_ms = self.environment.monotonic_ms() + LOCK_WAIT_MS
        is_said = False
        while not self.is_stopping:
            try:
                self._disk.lock(posixpath.join(directory, LOCK_FILE)).release()
                return
            except LockHeld as error:
                if self.environment.monotonic_ms() >= deadline_ms:
                    raise StartRefused(
                        f"the data directory {directory} is in use, and was for {LOCK_WAIT_MS / 1000:g} s: stop the "
                        "broker that runs on it"
                    ) from error
                if not is_said:
                    is_said = True
                    logger.warning("%s is in use yet, and is waited for %g s at most", directory, LOCK_WAIT_MS / 1000)
            except OSError as error:
                raise StartRefused(f"the directory {directory} cannot be used: {error.strerror or error}") from error
            await self.environment.sleep(LOCK_RETRY_MS)

    async def _start_page(self) -> None:
        metrics = self.options.metrics
        assert metrics is not None, "there is a page"
        await self._page.start({"listen": [metrics.host, metrics.port]})
        self._tell_page()

    def _tell_page(self) -> None:
        if self.options.metrics is not None:
            self._page.tell({"brokers": {str(each.plan.node_id): each.metrics_port for each in self.members}})

    # -- while it runs ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Returns when no broker is left that runs or will, or when they are to stop."""
        await self.until(lambda: self.is_stopping or all(member.is_down for member in self.members))

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
        self._store.process_ended(pid)
        if not self.is_stopping and not member.is_leaving:
            self.died(member, ending if not child.failure else f"{ending}: {child.failure}")

    def died(self, member: Member, how: str) -> None:
        name = member.child.name
        if not self._is_started:
            member.child.failure = member.child.failure or how
            member.is_down = True
            return
        delay_ms = member.restarts.died(self.environment.monotonic_ms())
        if delay_ms is None:
            member.is_down = True
            logger.error(
                "%s has died %d times within a minute, and is left down: the last time it %s", name, DEATHS_MAX, how
            )
            return
        logger.error("%s %s, and is started again in %g s", name, how, delay_ms / 1000)
        self._tasks.start(self._again(member, delay_ms), f"start {name} again")

    async def _again(self, member: Member, delay_ms: float) -> None:
        await self.environment.sleep(delay_ms)
        while not self.is_stopping:
            try:
                await self.start_broker(member)
                return
            except (OSError, StartRefused) as error:  # of memory or descriptors there may be enough in a moment
                logger.error("%s cannot be started, which is tried again: %s", member.child.name, error)
                if member.child.is_running:
                    return  # without a lifeline; its end is that of any other
            await self.environment.sleep(delay_ms)

    def _look_at_page(self) -> None:
        ending = self._page.reap()
        if ending is None or self.is_stopping:
            return
        if not self._is_started:
            self._page.failure = self._page.failure or ending
            return
        delay_ms = self._page_restarts.died(self.environment.monotonic_ms())
        if delay_ms is None:
            logger.error("the metrics page has died %d times within a minute, and is left down", DEATHS_MAX)
            return
        logger.error("the metrics page %s, and is started again in %g s", ending, delay_ms / 1000)
        self._tasks.start(self._page_again(delay_ms), "start the metrics page again")

    async def _page_again(self, delay_ms: float) -> None:
        await self.environment.sleep(delay_ms)
        if not self.is_stopping:
            await self._start_page()

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
            await self.until(lambda: not self._children, PHASE_MS)
        except TimeoutError:
            for child in self._children:
                self.was_clean = False
                logger.error("%s did not stop in time, and is killed", child.name)
                child.kill()
            await self.until(lambda: not self._children)
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
            await self.until(lambda: all(order in child.done or not child.is_running for child in children), PHASE_MS)
        except TimeoutError:
            late = ", ".join(child.name for child in children if order not in child.done and child.is_running)
            logger.error("%s did not %s in %g s", late, order, PHASE_MS / 1000)

    async def until(self, condition: Callable[[], bool], timeout_ms: float | None = None) -> None:
        """Raises TimeoutError."""
        deadline_ms = None if timeout_ms is None else self.environment.monotonic_ms() + timeout_ms
        while True:
            seen = self._changed.count
            if condition():
                return
            left_ms = None if deadline_ms is None else max(0.0, deadline_ms - self.environment.monotonic_ms())
            await self._changed.after(seen, left_ms)

    @property
    def addresses(self) -> list[str]:
        """Of all brokers, as clients are told them."""
        found: list[Any] = [address for each in self.members for address in (each.child.ready or {})["addresses"]]
        return [str(address) for address in found]
