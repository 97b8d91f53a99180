"""A broker in a process of its own, as the supervisor starts it. What it is to be comes over its lifeline (control.py).

It knows of no supervisor but that: its metadata is in a store like any other. When the lifeline ends, the process that
has the store is gone, and so is the way to all that a broker decides by. It quiesces, answers what runs, flushes its
logs and leaves its mark of a clean stop, without asking the store for anything; a new supervisor waits for that.
"""

import asyncio
import logging
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, Final

from odradek.broker.cluster.open_store import open_shared_store, wait_for_store
from odradek.broker.cluster.store import MetadataStore, StoreRefused, Unknown, Unreachable
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ByReference
from odradek.broker.config.settings import Settings
from odradek.broker.disk.descriptor_limits import raise_descriptor_limit
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch.broker_settings import settings_of
from odradek.broker.launch.collector import collector_paused, short_collections
from odradek.broker.launch.logging_format import configure_logging
from odradek.broker.launch.serving import HELPER_THREADS
from odradek.broker.launch.supervisor.control import (
    DRAIN,
    LEAVE,
    QUIESCE,
    STOP,
    Control,
    Message,
    control_of,
    ignore_terminal,
    receive_first,
)
from odradek.broker.server import Broker, disk_for
from odradek.broker.startup_errors import REFUSALS, BrokerFailed, explained
from odradek.runtime.environment import Environment, loop_factory

logger = logging.getLogger(__name__)

ORPHANED: Final = "orphaned"
FAILED: Final = "failed"
START_RETRY_S: Final = 0.5


class BrokerProcess:
    """The broker of this process, from what it is told to its end."""

    def __init__(self, begin: Message, environment: Environment) -> None:
        self._begin = begin
        self._environment = environment
        self._orders: asyncio.Queue[str] = asyncio.Queue()
        self._is_over = asyncio.Event()  # nobody waits for the start any more
        self._is_quiet = False
        self._control: Control

    async def run(self, sock: socket.socket, orders: list[Message]) -> int:
        """The exit code."""
        self._control = await control_of(sock, self._told, lambda: self._order(ORPHANED))
        for message in orders:
            self._told(message)
        self._environment.loop.add_signal_handler(signal.SIGTERM, self._order, LEAVE)
        try:
            await self._serve(settings_from(self._begin))
        except REFUSALS as error:
            return self._fails(explained(error) or str(error))
        except OSError as error:  # the disk, at some step of the start: the text names the file
            return self._fails(f"the broker cannot start: {error}")
        return 0

    def _fails(self, why: str) -> int:
        self._control.tell({"failed": why})
        self._control.close()
        return 1

    def _told(self, message: Message) -> None:
        self._order(message["do"])

    def _order(self, order: str) -> None:
        if order in (ORPHANED, LEAVE, STOP):
            self._is_over.set()
        self._orders.put_nowait(order)

    async def _serve(self, settings: Settings) -> None:
        disk = FileDisk()
        store = await open_shared_store(settings.config, self._environment, disk)
        assert store is not None, "the supervisor's own"
        try:
            broker = await self._started(settings, disk, store)
            if broker is None:
                return
            broker.on_failure = lambda: self._order(FAILED)
            if broker.failure is not None:
                self._order(FAILED)
            self._control.tell({"ready": ready(broker)})
            is_ended = False
            while not is_ended:
                is_ended = await self._is_ended_by(await self._orders.get(), broker, store)
        finally:
            await store.close()

    async def _started(self, settings: Settings, disk: FileDisk, store: MetadataStore) -> Broker | None:
        """A broker that has started; None when nobody waits for it any more. Raises as `Broker.start` does.

        A store that reads and takes no commit, for its device is full, is waited for as one that does not answer: a
        process that ended instead would soon have died too often to be started again.
        """
        environment, timeout_ms = self._environment, settings.config.initial_broker_registration_timeout_ms
        deadline_ms = environment.monotonic_ms() + timeout_ms
        is_said = False
        while await wait_for_store(store, environment, deadline_ms - environment.monotonic_ms(), self._is_over):
            broker = Broker(settings, environment, disk_for(settings, disk), store=store)
            try:
                with collector_paused():
                    await broker.start()
                return broker
            except (StoreRefused, Unknown, Unreachable) as error:
                if environment.monotonic_ms() >= deadline_ms:
                    raise
                if not is_said:
                    is_said = True
                    logger.warning(
                        "the start waits for the metadata store to take a change, %g s at most: %s",
                        *(timeout_ms / 1000, error),
                    )
            with suppress(TimeoutError):
                async with asyncio.timeout(START_RETRY_S):
                    await self._is_over.wait()
        return None

    async def _is_ended_by(self, order: str, broker: Broker, store: MetadataStore) -> bool:
        """Carries an order out. Raises BrokerFailed."""
        if order in (STOP, LEAVE):
            await broker.stop(all_stop=order == STOP)
            return True
        if order == FAILED:
            await broker.stop()
            raise BrokerFailed(broker.failure or "it cannot go on")
        if order == ORPHANED:
            logger.warning("the supervisor is gone: the broker stops, and the next supervisor starts it again")
            self._quiesce(broker)
            await store.close()
            await broker.stop(all_stop=True)
            return True
        if order == DRAIN:
            await broker.drain()
        else:
            assert order == QUIESCE, order
            self._quiesce(broker)
        self._control.tell({"done": order})
        return False

    def _quiesce(self, broker: Broker) -> None:
        if not self._is_quiet:
            self._is_quiet = True
            broker.quiesce()


def settings_from(begin: Message) -> Settings:
    """Raises ConfigError, ListenerError."""
    referred = begin["by_reference"]  # JSON has no word for it
    static = {name: ByReference(text) if name in referred else text for name, text in begin["static"].items()}
    return settings_of(BrokerConfig(static), begin["memory"], begin["metrics"])


def ready(broker: Broker) -> dict[str, Any]:
    """Where it listens, for whoever starts it again at the same place."""
    return {
        "addresses": [str(endpoint) for endpoint in broker.endpoints.values()],
        "port": next(iter(broker.bound.values())).port,
        "metrics_port": broker.metrics_port,
    }


async def _run(begin: Message, sock: socket.socket, orders: list[Message]) -> int:
    environment = Environment(owns_process=True)
    environment.allow_helper_threads(HELPER_THREADS)
    try:
        with short_collections(environment.loop):
            return await BrokerProcess(begin, environment).run(sock, orders)
    finally:
        environment.end_helper_threads()


def main() -> None:
    """`sys.argv[1]` is the descriptor of the lifeline."""
    ignore_terminal()
    sock = socket.socket(fileno=int(sys.argv[1]))
    try:
        message, orders = receive_first(sock)
    except EOFError:
        sys.exit(0)
    begin = message["begin"]
    configure_logging(begin["log_levels"], begin["log_format"], broker=begin["node_id"])
    raise_descriptor_limit()
    sock.setblocking(False)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        sys.exit(runner.run(_run(begin, sock, orders)))
