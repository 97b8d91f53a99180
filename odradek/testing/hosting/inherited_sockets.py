"""What a child that was forked from the test's process has inherited of brokers in threads: their sockets, not the
threads. While the child holds them, a broker that is killed keeps its port and its clients keep their connections.
"""

import os
from collections.abc import Iterable
from contextlib import suppress


def let_go(descriptors: Iterable[int]) -> None:
    """In the child: each descriptor stays taken, for some object may close it one day, and leads nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        with suppress(OSError):  # closed while its owner did not know yet
            os.dup2(nowhere, descriptor, inheritable=False)
    os.close(nowhere)
