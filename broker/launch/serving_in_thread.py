"""A broker within another program, in a thread with an event loop of its own.

with serving_in_thread(memory=True) as broker:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
"""

import asyncio
import os
import threading
from collections.abc import Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager

from odradek.broker.launch.serving import ANY_PORT, ServedBroker, serving
from odradek.runtime.environment import loop_factory

__all__ = ["serving_in_thread"]


@contextmanager
def serving_in_thread(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    memory: bool = False,
    listen: str = ANY_PORT,
    node_id: int = 0,
    metrics: str | None = None,
    config: Mapping[str, str] | None = None,
) -> Generator[ServedBroker]:
    """As `serving`, in a thread of its own: for programs without an event loop, and for those that block theirs."""
    started: Future[tuple[ServedBroker, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    ended: Future[None] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        async with serving(
            data_dir, memory=memory, listen=listen, node_id=node_id, metrics=metrics, config=config
        ) as broker:
            started.set_result((broker, asyncio.get_running_loop(), stop))
            await stop.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(serve())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            (ended if started.done() else started).set_exception(error)
        else:
            ended.set_result(None)

    thread = threading.Thread(target=run, name="odradek broker", daemon=True)
    thread.start()
    broker, loop, stop = started.result()
    try:
        yield broker
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
    ended.result()
