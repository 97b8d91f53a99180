"""Whether the client of a connection that nobody reads from has left: such a transport does not say so."""

import asyncio
import select
from typing import Final

_LEFT: Final = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
"""Where the system does not tell the first one, who has only closed his end is noticed when he is read from again."""


def has_left(transport: asyncio.BaseTransport) -> bool:
    """Whether the client has closed its end, or reset the connection; what it had sent before may still be unread."""
    sock = transport.get_extra_info("socket")
    if sock is None or (descriptor := sock.fileno()) < 0:
        return False
    poll = select.poll()
    poll.register(descriptor, _LEFT)
    return bool(poll.poll(0))
