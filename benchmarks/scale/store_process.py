"""The metadata store as the supervisor serves it, and nothing else.

    python -m benchmarks.scale.store_process DIRECTORY

Prints the path of its socket, and serves until SIGTERM. Its loop is asyncio's own, as the supervisor's is.
"""

import asyncio
import os
import signal
import sys

from odradek.broker.cluster.embedded import EmbeddedStore
from odradek.broker.cluster.socket_store.address import listening_socket
from odradek.broker.cluster.socket_store.server import StoreServer
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch.cluster_directory import SOCKET_FILE
from odradek.broker.launch.supervisor.run_supervisor import HELPER_THREADS
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks


async def serve(directory: str) -> None:
    """Raises OSError."""
    environment, disk, stop = Environment(), FileDisk(), asyncio.Event()
    environment.allow_helper_threads(HELPER_THREADS)
    environment.loop.add_signal_handler(signal.SIGTERM, stop.set)
    tasks = Tasks(environment.loop)
    disk.make_dir(directory)
    store = EmbeddedStore.open(disk, directory, run_blocking=environment.run_blocking, tasks=tasks)
    path = os.path.join(directory, SOCKET_FILE)
    server = StoreServer(store, environment, path)
    await server.start(listening_socket(path))
    print(path, flush=True)
    await stop.wait()
    await server.close()
    await store.close()
    await tasks.close()
    environment.end_helper_threads()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
