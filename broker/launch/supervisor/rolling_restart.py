"""`odradek cluster roll`: the supervisor restarts its brokers one after the other.

Before each one all replicas are in sync and all brokers run, so that what it leads finds another leader. It gives that
up by itself (controlled shutdown) before it ends.
"""

import logging
from collections.abc import AsyncGenerator
from typing import Final

from odradek.broker.cluster.socket_store.messages import CommandRefused
from odradek.broker.cluster.store import MetadataStore
from odradek.broker.launch.supervisor.control import LEAVE
from odradek.broker.launch.supervisor.in_sync import OutOfSync
from odradek.broker.launch.supervisor.member import Member
from odradek.broker.launch.supervisor.supervisor import Supervisor
from odradek.broker.startup_errors import StartRefused

logger = logging.getLogger(__name__)

LEAVE_MS: Final = 30_000.0
"""How long a broker may take to give up what it leads, and to end."""
IN_SYNC_MS: Final = 300_000.0
IN_SYNC_LOOK_MS: Final = 200.0


class RollingRestart:
    """One at a time, of the brokers of a supervisor."""

    def __init__(self, supervisor: Supervisor, store: MetadataStore) -> None:
        self._supervisor = supervisor
        self._store = store
        self._environment = supervisor.environment
        self._is_running = False

    async def on_command(self, command: str) -> AsyncGenerator[str]:
        """What is asked for over the socket. Raises CommandRefused."""
        if command != "roll":
            raise CommandRefused(f"the supervisor does not know {command}: both should be of one release")
        if self._supervisor.options.data_dir is None:
            raise CommandRefused("the brokers keep everything in memory, and would lose it by being restarted")
        if self._is_running:
            raise CommandRefused("the brokers are being restarted already")
        self._is_running = True
        try:
            for member in self._supervisor.members:
                async for line in self._restart(member):
                    yield line
            await self._in_sync()
        finally:
            self._is_running = False
        yield f"all {len(self._supervisor.members)} brokers were restarted, and all replicas are in sync"

    async def _restart(self, member: Member) -> AsyncGenerator[str]:
        """Raises CommandRefused."""
        supervisor, child = self._supervisor, member.child
        await self._in_sync()
        self._require_all_ready()
        began_ms = self._environment.monotonic_ms()
        member.is_leaving = True
        try:
            child.order(LEAVE)
            try:
                await supervisor.until(lambda: not child.is_running, LEAVE_MS)
            except TimeoutError:
                logger.error("%s did not stop in %g s, and is killed", child.name, LEAVE_MS / 1000)
                yield f"{child.name} did not stop in {LEAVE_MS / 1000:g} s, and is killed"
                child.kill()
                await supervisor.until(lambda: not child.is_running)
        finally:
            member.is_leaving = False
        try:
            await supervisor.start_broker(member)
        except (OSError, StartRefused) as error:
            supervisor.died(member, f"could not be started: {error}")
        await supervisor.until(lambda: member.is_ready or member.is_down or supervisor.is_stopping)
        self._require_all_ready()
        yield f"{child.name} was restarted in {(self._environment.monotonic_ms() - began_ms) / 1000:.1f} s"

    def _require_all_ready(self) -> None:
        """Raises CommandRefused."""
        self._require_running()
        missing = [member.child.name for member in self._supervisor.members if not member.is_ready]
        if missing:
            raise CommandRefused(f"{', '.join(missing)} does not run: no other broker is restarted meanwhile")

    async def _in_sync(self) -> None:
        """Returns when every replica is in sync. Raises CommandRefused when that takes too long."""
        out_of_sync = OutOfSync(self._store)
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
        if self._supervisor.is_stopping:
            raise CommandRefused("the cluster stops")
