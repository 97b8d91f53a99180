"""How several brokers in one process end: those that cannot go on by themselves, and all of them together."""

import asyncio
from collections.abc import Sequence

from odradek.broker.server import Broker, logger
from odradek.broker.startup_errors import BrokerFailed
from odradek.runtime.environment import Environment
from odradek.runtime.signal import Signal
from odradek.runtime.tasks import Tasks


async def until_stopped(running: list[Broker], environment: Environment, stop: asyncio.Event) -> None:
    """Returns when the signal has come. A broker that cannot go on leaves the others alone; `running` are those that
    are left. Raises BrokerFailed with the last one."""
    wake = Signal()

    def look_again() -> None:
        wake.give()

    for broker in running:
        broker.on_failure = look_again
    tasks = Tasks(environment.loop)

    async def wait_for_signal() -> None:
        await stop.wait()
        look_again()

    tasks.start(wait_for_signal(), "wait for a signal")
    try:
        while not stop.is_set():
            seen = wake.count
            for broker in [broker for broker in running if broker.failure is not None]:
                logger.error("broker %d stops: %s", broker.settings.node_id, broker.failure)
                running.remove(broker)
                await broker.stop()
                if not running:
                    raise BrokerFailed(f"no broker is left: {broker.failure}")
            await wake.after(seen)
    finally:
        await tasks.close()


async def stop_all(brokers: Sequence[Broker]) -> None:
    """Stops a whole cluster: nobody takes over from anybody, so that all are in sync when they come back."""
    await drain_all(brokers)
    for broker in brokers:
        await broker.stop(all_stop=True)


async def drain_all(brokers: Sequence[Broker]) -> None:
    """The first half of that: requests that run are answered, while the brokers replicate from one another."""
    for broker in brokers:
        broker.quiesce()
    await asyncio.gather(*(broker.drain() for broker in brokers))
