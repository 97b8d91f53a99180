"""Asks the supervisor that runs on a directory for something, over its socket."""

import asyncio
import posixpath
from collections.abc import AsyncGenerator
from contextlib import aclosing

from odradek.broker.cluster.socket_store.connection import ConnectionLost, connect
from odradek.broker.cluster.socket_store.messages import CommandRefused
from odradek.broker.cluster.store import StoreRefused
from odradek.broker.directories.cluster_layout import metadata_directory
from odradek.broker.launch.cluster_directory import SOCKET_FILE


async def asked(directory: str, command: str) -> AsyncGenerator[str]:
    """What the supervisor says while it does it. Raises CommandRefused."""
    path = posixpath.join(metadata_directory(directory), SOCKET_FILE)
    try:
        connection = await connect(path, asyncio.get_running_loop())
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise CommandRefused(
            f"no `odradek cluster run --processes` runs on {directory}: start one, or give another --data-dir"
        ) from error
    except (StoreRefused, ConnectionLost) as error:
        raise CommandRefused(str(error)) from error
    except OSError as error:
        raise CommandRefused(f"the supervisor at {path} is not reached: {error.strerror or error}") from error
    try:
        async with aclosing(connection.command(command)) as lines:
            async for line in lines:
                yield line
    except ConnectionLost as error:
        raise CommandRefused(f"the supervisor has gone before it was done: {error}") from error
    finally:
        connection.close()
